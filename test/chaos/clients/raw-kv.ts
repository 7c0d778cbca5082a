import { credentials, type ServiceError as GrpcError, Metadata, status } from '@grpc/grpc-js';
import {
  Compare_CompareResult,
  Compare_CompareTarget,
  DeleteRangeRequest,
  PutRequest,
  RangeRequest,
  type TxnRequest,
} from '@remora/protocol/etcd';
import { KVClient } from '@remora/protocol/grpc-clients';
import { done, type KvClient, type Outcome, UNKNOWN } from './kv-client.ts';

const NO_METADATA = new Metadata();
/** The shortest time between two requests to a node that is down. */
const DOWN_PAUSE_MS = 50;

export interface RawKvOptions {
  readonly name: string;
  readonly endpoint: string;
  readonly timeoutMs: number;
}

/**
 * etcd's gRPC API at one node, without retries and with a short deadline: requests in flight when that node dies stay
 * unanswered. After any error of a request that was sent, the outcome of a write is unknown.
 */
export class RawKv implements KvClient {
  readonly name: string;
  readonly endpoint: string;
  readonly #client: KVClient;
  readonly #timeoutMs: number;

  constructor({ name, endpoint, timeoutMs }: RawKvOptions) {
    this.name = name;
    this.endpoint = endpoint;
    this.#timeoutMs = timeoutMs;
    // Reconnects soon to a node that restarted, and never repeats a request by itself.
    this.#client = new KVClient(endpoint, credentials.createInsecure(), {
      'grpc.enable_retries': 0,
      'grpc.initial_reconnect_backoff_ms': 50,
      'grpc.max_reconnect_backoff_ms': 200,
    });
  }

  get(key: string): Promise<Outcome> {
    const request = RangeRequest.fromPartial({ key: Buffer.from(key) });
    return this.#call<{ readonly kvs: readonly { readonly value: Uint8Array }[] }>(
      (metadata, options, answer) => this.#client.range(request, metadata, options, answer),
      ({ kvs: [found] }) => ({
        type: 'done',
        ok: true,
        out: found === undefined ? null : Buffer.from(found.value).toString(),
      }),
    );
  }

  put(key: string, value: string): Promise<Outcome> {
    const request = PutRequest.fromPartial({ key: Buffer.from(key), value: Buffer.from(value) });
    return this.#call<unknown>(
      (...rest) => this.#client.put(request, ...rest),
      () => done(),
    );
  }

  delete(key: string): Promise<Outcome> {
    const request = DeleteRangeRequest.fromPartial({ key: Buffer.from(key) });
    return this.#call<unknown>(
      (...rest) => this.#client.deleteRange(request, ...rest),
      () => done(),
    );
  }

  compareAndSet(key: string, expected: string | null, value: string): Promise<Outcome> {
    const put = PutRequest.fromPartial({ key: Buffer.from(key), value: Buffer.from(value) });
    const request: TxnRequest = {
      compare: [
        {
          key: Buffer.from(key),
          rangeEnd: Buffer.alloc(0),
          result: Compare_CompareResult.EQUAL,
          ...(expected === null
            ? { target: Compare_CompareTarget.CREATE, targetUnion: { $case: 'createRevision', value: 0n } }
            : { target: Compare_CompareTarget.VALUE, targetUnion: { $case: 'value', value: Buffer.from(expected) } }),
        },
      ],
      success: [{ request: { $case: 'requestPut', value: put } }],
      failure: [],
    };
    return this.#call<{ readonly succeeded: boolean }>(
      (metadata, options, answer) => this.#client.txn(request, metadata, options, answer),
      ({ succeeded }) => ({ type: 'done', ok: succeeded }),
    );
  }

  close(): void {
    this.#client.close();
  }

  #call<Reply>(
    send: (
      metadata: Metadata,
      options: { readonly deadline: number },
      answer: (error: GrpcError | null, reply: Reply) => void,
    ) => unknown,
    read: (reply: Reply) => Outcome,
  ): Promise<Outcome> {
    return new Promise((resolve) => {
      send(NO_METADATA, { deadline: Date.now() + this.#timeoutMs }, (error, reply) => {
        if (error === null) resolve(read(reply));
        else if (neverSent(error)) setTimeout(resolve, DOWN_PAUSE_MS, { type: 'failed', why: 'not connected' });
        else resolve(UNKNOWN);
      });
    });
  }
}

/** Whether gRPC had no connection to send the request on. */
function neverSent({ code, details }: GrpcError): boolean {
  return code === status.UNAVAILABLE && details.startsWith('No connection established');
}
