/** The contract service through the client of grpc-js. */
import {
  type CallOptions,
  type ChannelOptions,
  Client,
  type ClientDuplexStream,
  type ClientReadableStream,
  type ClientWritableStream,
  credentials,
  type Interceptor,
  Metadata,
  type StatusObject,
} from '@grpc/grpc-js';
import { CONTRACT_SERVICE, type Instructions, MESSAGE_BYTES_MAX, type Production } from './contract-service.ts';

/** How a call ended, and what came before. */
export interface Outcome {
  readonly code: number;
  readonly message: string;
  readonly answers: readonly Buffer[];
  readonly head: Metadata;
  readonly trailers: Metadata;
}

export interface CallSettings {
  readonly metadata?: readonly (readonly [string, string | Buffer])[];
  readonly deadlineMs?: number;
  readonly interceptors?: Interceptor[];
}

const same = (bytes: Buffer): Buffer => bytes;

export class GrpcJsClient {
  readonly client: Client;

  constructor(port: number, options: ChannelOptions = {}) {
    this.client = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), {
      'grpc.max_receive_message_length': MESSAGE_BYTES_MAX,
      // Each client has a connection of its own.
      'grpc.use_local_subchannel_pool': 1,
      ...options,
    });
  }

  close(): void {
    this.client.close();
  }

  echo(message: Buffer, settings?: CallSettings): Promise<Outcome> {
    return this.#unary(CONTRACT_SERVICE.echo.path, message, settings);
  }

  unary(instructions: Instructions, settings?: CallSettings): Promise<Outcome> {
    return this.#unary(CONTRACT_SERVICE.unary.path, Buffer.from(JSON.stringify(instructions)), settings);
  }

  /** A unary call of any path. */
  call(path: string, settings?: CallSettings): Promise<Outcome> {
    return this.#unary(path, Buffer.alloc(0), settings);
  }

  /** A unary call that the caller can cancel. */
  cancellable(instructions: Instructions): { readonly outcome: Promise<Outcome>; cancel(): void } {
    const cancels: (() => void)[] = [];
    const outcome = this.#unary(CONTRACT_SERVICE.unary.path, Buffer.from(JSON.stringify(instructions)), {}, cancels);
    return { outcome, cancel: () => cancels[0]?.() };
  }

  collect(settings?: CallSettings): {
    readonly call: ClientWritableStream<Buffer>;
    readonly outcome: Promise<Outcome>;
  } {
    const { path } = CONTRACT_SERVICE.collect;
    const [made, options] = callOptions(settings);
    let finish: ReturnType<typeof gather> | undefined;
    const call = this.client.makeClientStreamRequest<Buffer, Buffer>(
      path,
      same,
      same,
      made,
      options,
      (_error, answer) => finish?.(answer),
    );
    const outcome = new Promise<Outcome>((resolve) => {
      finish = gather(call, resolve);
    });
    return { call, outcome };
  }

  produce(production: Production, settings?: CallSettings): ClientReadableStream<Buffer> {
    const request = Buffer.from(JSON.stringify(production));
    const [made, options] = callOptions(settings);
    return this.client.makeServerStreamRequest(CONTRACT_SERVICE.produce.path, same, same, request, made, options);
  }

  chat(settings?: CallSettings): ClientDuplexStream<Buffer, Buffer> {
    const [made, options] = callOptions(settings);
    return this.client.makeBidiStreamRequest(CONTRACT_SERVICE.chat.path, same, same, made, options);
  }

  #unary(path: string, message: Buffer, settings?: CallSettings, cancels: (() => void)[] = []): Promise<Outcome> {
    const [made, options] = callOptions(settings);
    return new Promise((resolve) => {
      const call = this.client.makeUnaryRequest<Buffer, Buffer>(
        path,
        same,
        same,
        message,
        made,
        options,
        (_error, answer) => finish(answer),
      );
      cancels.push(() => call.cancel());
      const finish = gather(call, resolve);
    });
  }
}

/** Collects what a stream of answers brings until it ends. */
export function outcomeOf(call: ClientReadableStream<Buffer> | ClientDuplexStream<Buffer, Buffer>): Promise<Outcome> {
  return new Promise((resolve) => {
    const received: Buffer[] = [];
    const finish = gather(call, resolve, received);
    call.on('data', (answer: Buffer) => received.push(answer));
    call.on('error', () => undefined);
    call.on('end', () => finish(undefined));
  });
}

interface Surface {
  on(event: 'metadata', listener: (metadata: Metadata) => void): unknown;
  on(event: 'status', listener: (status: StatusObject) => void): unknown;
}

/** Resolves when the answers are complete and the status is there. */
function gather(call: Surface, resolve: (outcome: Outcome) => void, answers: Buffer[] = []) {
  let head = new Metadata();
  let status: StatusObject | undefined;
  let isComplete = false;
  const tryResolve = (): void => {
    if (status === undefined || !isComplete) return;
    resolve({ code: status.code, message: status.details, answers, head, trailers: status.metadata });
  };
  call.on('metadata', (metadata) => {
    head = metadata;
  });
  call.on('status', (ended) => {
    status = ended;
    tryResolve();
  });
  return (last: Buffer | undefined): void => {
    if (last !== undefined) answers.push(last);
    isComplete = true;
    tryResolve();
  };
}

function callOptions({ metadata = [], deadlineMs, interceptors }: CallSettings = {}): [Metadata, CallOptions] {
  const made = new Metadata();
  for (const [name, value] of metadata) made.add(name, value);
  return [
    made,
    {
      ...(deadlineMs === undefined ? {} : { deadline: Date.now() + deadlineMs }),
      ...(interceptors === undefined ? {} : { interceptors }),
    },
  ];
}
