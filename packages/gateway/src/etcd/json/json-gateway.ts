import { type Clock, type Logger, ServiceError, type Timer, toServiceError } from '@remora/base';
import { ETCD_SCHEMA } from '@remora/protocol/etcd';
import {
  type CallerInfo,
  callInfo,
  noteRevision,
  type StreamHandler,
  type StreamSink,
  TIMEOUT_LIMITS,
} from '../../calls.ts';
import type { ApiAnswer, LineStream } from '../../http/api-types.ts';
import type { WaitSlots } from '../../routing/calls/wait-slots.ts';
import type { Duplex, EtcdApi, ServerStream, Unary, Waiting } from '../etcd-api.ts';
import { ETCD_VERSION } from '../version.ts';
import { fromJson, toJson } from './json-codec.ts';
import { JSON_HEADERS, jsonError, jsonRefusal, streamError } from './json-errors.ts';
import { JsonLines } from './json-lines.ts';
import { readJsonValue, readJsonValues } from './json-reader.ts';
import { ETCD_PATHS } from './routes.ts';

export interface JsonRequest {
  readonly method: string;
  /** Path and query, as they stand in the request line. */
  readonly target: string;
  /** The whole body. */
  readonly text: string;
  /** The time until the caller's own deadline, in ms. */
  readonly callerMs: number | undefined;
  readonly caller: CallerInfo;
  /** Aborts when the client is gone or the node stops; its reason is the error of the call. */
  readonly signal: AbortSignal;
}

export interface JsonGatewayDeps {
  readonly api: EtcdApi;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Slots for calls that wait, and for streams. */
  readonly waits: WaitSlots;
  /** As of the API: it follows how large a body may be. */
  readonly requestBytesMax: number;
}

type Method =
  | Unary<unknown, unknown>
  | Waiting<unknown, unknown>
  | Duplex<unknown, unknown>
  | ServerStream<unknown, unknown>;

interface Route {
  readonly name: string;
  readonly method: Method;
  /** Full names of the messages. */
  readonly request: string;
  readonly response: string;
}

/** Space for names and punctuation of a request beside its keys and values, which base64 makes a third longer. */
const BODY_OVERHEAD_BYTES = 256 * 1024;

/** A stream of heartbeats ends with its requests. A watch goes on, as `curl` sends its whole body at once. */
const ENDS_WITH_REQUESTS: ReadonlySet<string> = new Set(['leaseKeepAlive']);

/**
 * etcd's JSON gateway: etcd's API as JSON over HTTP, without a transport.
 *
 * JG1. A request goes to the handler that gRPC calls (`etcdApi`), so both have the same checks, errors and limits.
 * JG2. A client that closes its connection ends its call, and what a waiting call has done is taken back.
 *      A call, or a stream, ends at its caller's deadline as well.
 * JG3. Streams and waiting calls have a slot each; without one they are refused.
 */
export class JsonGateway {
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #waits: WaitSlots;
  readonly #routes: ReadonlyMap<string, Route>;
  readonly bodyBytesMax: number;

  constructor({ api, clock, logger, waits, requestBytesMax }: JsonGatewayDeps) {
    this.#clock = clock;
    this.#logger = logger;
    this.#waits = waits;
    this.#routes = routesOf(api);
    this.bodyBytesMax = Math.ceil((requestBytesMax * 4) / 3) + BODY_OVERHEAD_BYTES;
  }

  /** Never rejects: errors become answers. */
  async handle(request: JsonRequest): Promise<ApiAnswer> {
    const [path = ''] = request.target.split('?', 1);
    if (path === '/version') return { status: 200, headers: JSON_HEADERS, body: VERSION };
    const route = this.#routes.get(path);
    if (route === undefined) return jsonRefusal(NOT_FOUND, 'Not Found', 404);
    if (request.method !== 'POST') {
      return jsonRefusal(UNIMPLEMENTED, 'Method Not Allowed', 405, { allow: 'POST' });
    }
    try {
      return await this.#routed(route, request);
    } catch (thrown) {
      return jsonError(this.#logged(toServiceError(thrown)), route.method.statusOf);
    }
  }

  #routed({ name, method, ...types }: Route, request: JsonRequest): Promise<ApiAnswer> | ApiAnswer {
    switch (method.kind) {
      case 'unary':
      case 'waiting':
        return this.#called(method, types, request);
      case 'duplex': {
        const requests = parsed(request.text, readJsonValues).map((value) => fromJson(types.request, value));
        if (requests.length === 0) throw new ServiceError('INVALID_ARGUMENT', 'the body is empty; send a JSON object');
        const open = (sink: StreamSink<unknown>, resume: () => void) => method.open(sink, resume, request.caller);
        return this.#streaming(open, types.response, method.statusOf, request, {
          requests,
          halfClose: ENDS_WITH_REQUESTS.has(name),
        });
      }
      case 'serverStream': {
        const requests = [this.#requestOf(types.request, request)];
        const open = (sink: StreamSink<unknown>) => method.open(sink, request.caller);
        return this.#streaming(open, types.response, method.statusOf, request, {
          requests,
          halfClose: false,
        });
      }
    }
  }

  /** JG2. */
  async #called(
    method: Unary<unknown, unknown> | Waiting<unknown, unknown>,
    types: { readonly request: string; readonly response: string },
    request: JsonRequest,
  ): Promise<ApiAnswer> {
    const { caller, signal, callerMs } = request;
    const message = this.#requestOf(types.request, request);
    const leave = method.kind === 'waiting' ? this.#slot() : () => {};
    let late: Timer | undefined;
    try {
      const response = await new Promise((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason);
        let giveUp = (_why: ServiceError): void => {};
        const stop = (why: unknown): void => {
          giveUp(toServiceError(why));
          // A waiting call takes back what it has done first, then ends with the reason.
          if (method.kind === 'unary') reject(why);
        };
        const onAbort = (): void => stop(signal.reason);
        const ended = (error: ServiceError | undefined, answer: unknown): void => {
          signal.removeEventListener('abort', onAbort);
          if (error === undefined) resolve(answer);
          else reject(error);
        };
        signal.addEventListener('abort', onAbort, { once: true });
        late = this.#atDeadline(callerMs, stop);
        const call = callInfo(callerMs, TIMEOUT_LIMITS, caller);
        if (method.kind === 'waiting') giveUp = method.handle(message, call, ended);
        else giveUp = method.handle(message, call, ended) ?? giveUp;
      });
      noteRevision(caller.seen, response);
      return { status: 200, headers: ANSWER_HEADERS, body: toJson(types.response, response) };
    } finally {
      late?.cancel();
      leave();
    }
  }

  #atDeadline(callerMs: number | undefined, stop: (why: ServiceError) => void): Timer | undefined {
    if (callerMs === undefined) return undefined;
    const details = { etcd: 'callerDeadline' };
    return this.#clock.setTimer(callerMs, () =>
      stop(new ServiceError('DEADLINE_EXCEEDED', `the call took longer than ${callerMs} ms`, { details })),
    );
  }

  #streaming(
    open: (sink: StreamSink<unknown>, resume: () => void) => StreamHandler<unknown>,
    response: string,
    statusOf: Method['statusOf'],
    { caller, callerMs }: JsonRequest,
    input: { readonly requests: readonly unknown[]; readonly halfClose: boolean },
  ): ApiAnswer {
    const leave = this.#slot();
    const lines: LineStream = (sink) => {
      const source = new JsonLines(
        {
          write: (message) => {
            noteRevision(caller.seen, message);
            return sink.write({ result: toJson(response, message) });
          },
          unread: () => sink.unread(),
          end: (error) => sink.end(error && streamError(this.#logged(error), statusOf)),
        },
        open,
        input,
      );
      source.start();
      const late = this.#atDeadline(callerMs, (why) => source.end(why));
      return {
        onDrain: () => source.onDrain(),
        onClose: () => {
          late?.cancel();
          source.onClose();
          leave();
        },
      };
    };
    return { status: 200, headers: ANSWER_HEADERS, body: undefined, lines, undelivered: leave };
  }

  #requestOf(type: string, { text }: JsonRequest): unknown {
    return fromJson(type, parsed(text, readJsonValue));
  }

  /** JG3. */
  #slot(): () => void {
    const leave = this.#waits.take();
    if (leave === undefined) throw this.#waits.refusal();
    return leave;
  }

  #logged(error: ServiceError): ServiceError {
    if (error.code === 'INTERNAL') this.#logger.error({ error: error.message, cause: error.cause }, 'HTTP call failed');
    return error;
  }
}

const NOT_FOUND = 5;
const UNIMPLEMENTED = 12;
const VERSION = { etcdserver: ETCD_VERSION, etcdcluster: ETCD_VERSION } as const;
const ANSWER_HEADERS = { ...JSON_HEADERS, 'grpc-metadata-content-type': 'application/grpc' } as const;

function routesOf(api: EtcdApi): ReadonlyMap<string, Route> {
  const services = Object.entries(ETCD_PATHS) as [keyof EtcdApi, (typeof ETCD_PATHS)[keyof EtcdApi]][];
  const routes = services.flatMap(([key, { service, paths }]) =>
    Object.entries(paths as Readonly<Record<string, readonly string[]>>).flatMap(([name, each]) => {
      const types = ETCD_SCHEMA.services[service]?.[name];
      if (types === undefined) throw new TypeError(`etcd's API has no method ${service}.${name}`);
      const method = (api[key] as unknown as Readonly<Record<string, Method>>)[name] as Method;
      return each.map((path): [string, Route] => [path, { name, method, ...types }]);
    }),
  );
  return new Map(routes);
}

function parsed<Value>(text: string, read: (text: string) => Value): Value {
  try {
    return read(text);
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause;
    throw new ServiceError('INVALID_ARGUMENT', `the body is not JSON: ${cause.message}`, { cause });
  }
}
