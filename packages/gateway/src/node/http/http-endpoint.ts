import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  type Clock,
  INPUT_LIMITS,
  InputBudget,
  type InputStats,
  parseBoundedJson,
  ServiceError,
  sleep,
  type Timer,
  toServiceError,
} from '@remora/base';
import type { ApiAnswer, EventStream } from '../../http/api-types.ts';
import { HttpApi, type HttpApiDeps } from '../../http/http-api.ts';
import { errorAnswer, type HttpDetails } from '../../http/statuses.ts';
import { WaitSlots } from '../../routing/calls/wait-slots.ts';

/** The largest request is a check of a thousand versions. */
const BODY_BYTES_MAX = 256 * 1024;
/**
 * Calls and streams at a time: fewer than the connections that a server accepts, which leaves room for health checks.
 */
const CALLS_MAX = 800;
/**
 * Calls that may wait, and streams of events, at a time: the rest is for renewals and for calls that end waits (a
 * release).
 */
const WAITS_SHARE = 0.5;
/** Bytes of all incomplete bodies: a few hundred of usual size, and a small part of the node's memory. */
const UNFINISHED_BYTES_MAX = 8 * 1024 * 1024;
/** The share of these bytes for one address. */
const ADDRESS_SHARE = 0.25;
/** A renewal or a release is smaller. `CALLS_MAX` bodies of this size need no budget. */
const SMALL_BODY_BYTES = 4 * 1024;
const STOP_GRACE_MS = 1_000;
/** Statuses of requests that are malformed or too large. */
const MALFORMED: readonly number[] = [400, 413, 415];
/** Interval of comments on a stream without events, as a proxy may close a silent connection. */
const BEAT_MS = 15_000;
const STOPPING = new ServiceError('UNAVAILABLE', 'this node is shutting down; send the request to another node');

const BUSY = new ServiceError(
  'RESOURCE_EXHAUSTED',
  'this node has too many HTTP calls in flight; retry later or at another node',
  {
    details: { retryAfterMs: 1_000 },
  },
);

/** The client is late with the rest of the body, which is dropped. */
const ENDED = new ServiceError(
  'RESOURCE_EXHAUSTED',
  'too many request bodies are incomplete, and this one is among the oldest of its address; send the request again',
  {
    details: { retryAfterMs: 1_000, headers: { connection: 'close' } },
  },
);

/** Smaller in tests, which have fewer connections. */
interface EndpointLimits {
  readonly callsMax: number;
  readonly unfinishedBytesMax: number;
}

const ENDPOINT_LIMITS: EndpointLimits = { callsMax: CALLS_MAX, unfinishedBytesMax: UNFINISHED_BYTES_MAX };

export interface HttpEndpointDeps extends Omit<HttpApiDeps, 'waits'> {
  /** Called for each call that is refused as malformed. */
  readonly onMalformed?: () => void;
  /** Called for each call that is refused because too many wait, or listen to events. */
  readonly onWaitRefused?: () => void;
}

/** Serves some paths of an HTTP server. */
export interface HttpEndpoint {
  /** A path that ends with a slash stands for all paths below it. */
  readonly paths: readonly string[];
  /** What incomplete bodies hold in memory; each counts as a connection. */
  readonly input: InputStats;
  handle(request: IncomingMessage, response: ServerResponse): Promise<void>;
  /** Ends waiting calls with an error, and takes back grants that no client will learn of. */
  stop(): Promise<void>;
}

/**
 * The JSON API over HTTP.
 *
 * HE1. A body has at most `BODY_BYTES_MAX` bytes, and is JSON by its type, which a form of a web page cannot send. The
 *      server has refused pages of other sites by then (`request-guard.ts`); there are no CORS headers, so none reads
 *      an answer. All incomplete bodies together have `UNFINISHED_BYTES_MAX`, and those of one address a share of it.
 *      Above that, the body that started first is ended, of that address or of the one that has most (input-budget.ts
 *      IB2), so that the next request is not refused. Small bodies are not counted. The server bounds how long a body
 *      may take.
 * HE2. A client that closes its connection ends its call. A grant in an answer that it did not read is taken back.
 * HE3. The numbers of calls and streams are bounded; further ones are refused at once. Calls that may take long have a
 *      part.
 * HE4. A client that does not read its events takes up no memory: the source pauses until it does.
 * HE5. An ended stream stays open until its client has read it, and nothing is written to it: Node would end the
 *      process for that.
 */
export function createHttpEndpoint(deps: HttpEndpointDeps, limits: Partial<EndpointLimits> = {}): HttpEndpoint {
  const { callsMax, unfinishedBytesMax } = { ...ENDPOINT_LIMITS, ...limits };
  const unfinished = new InputBudget(
    {
      // Each is a call, and these are counted (HE3).
      ...{ connectionsMax: callsMax, connectionsPerAddressMax: callsMax },
      ...{ bytesMax: unfinishedBytesMax, bytesPerAddressMax: Math.floor(unfinishedBytesMax * ADDRESS_SHARE) },
      messageMs: INPUT_LIMITS.messageMs,
    },
    deps.clock,
    deps.logger,
  );
  const waits = new WaitSlots(Math.floor(callsMax * WAITS_SHARE), deps.onWaitRefused ?? (() => {}));
  const api = new HttpApi({ ...deps, waits });
  const open = new Map<AbortController, Promise<ApiAnswer>>();
  const streams = new Set<ServerResponse>();
  let stopping = false;
  return {
    paths: ['/v1/', '/openapi.json'],
    get input() {
      return unfinished.stats;
    },
    async handle(request, response) {
      const caller = new AbortController();
      response.once('close', () => caller.abort(new ServiceError('CANCELED', 'the client closed the connection')));
      if (stopping) caller.abort(STOPPING);
      const isBusy = open.size + streams.size >= callsMax;
      const answering = isBusy
        ? Promise.resolve(errorAnswer(BUSY))
        : answerOf({ api, unfinished }, request, caller.signal);
      open.set(caller, answering);
      const answer = await answering;
      open.delete(caller);
      if (MALFORMED.includes(answer.status)) deps.onMalformed?.();
      if (response.closed) return answer.undelivered?.();
      if (answer.events !== undefined) return tell(response, answer.events, { clock: deps.clock, streams });
      response.once('close', () => {
        if (!response.writableFinished) answer.undelivered?.();
      });
      write(response, answer);
    },
    async stop() {
      stopping = true;
      const answers = [...open.values()];
      for (const caller of open.keys()) caller.abort(STOPPING);
      for (const stream of streams) stream.end();
      // A waiting call starts to take back only when it ends.
      const settled = Promise.all(answers).then(() => api.cleanedUp());
      await Promise.race([settled, sleep(deps.clock, STOP_GRACE_MS)]);
    },
  };
}

async function answerOf(
  { api, unfinished }: { readonly api: HttpApi; readonly unfinished: InputBudget },
  request: IncomingMessage,
  signal: AbortSignal,
): Promise<ApiAnswer> {
  try {
    const { method = '', url: target = '' } = request;
    const hasBody = method === 'POST' || method === 'PUT';
    return await api.handle({
      method,
      target,
      body: hasBody ? await readJson(request, unfinished) : undefined,
      signal,
    });
  } catch (error) {
    return errorAnswer(toServiceError(error));
  }
}

/** HE1 */
async function readJson(request: IncomingMessage, unfinished: InputBudget): Promise<unknown> {
  const type = (request.headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase();
  if (type !== 'application/json') {
    throw refused(415, 'the body is application/json: curl --json, or -H "content-type: application/json"');
  }
  const bytes = await readBody(request, unfinished);
  if (bytes.length === 0) return undefined;
  try {
    return parseBoundedJson(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (cause) {
    const problem = cause instanceof SyntaxError ? cause.message : 'it is not UTF-8';
    throw new ServiceError('INVALID_ARGUMENT', `the body is not JSON: ${problem}`, { cause });
  }
}

/** Bytes above a limit are read and dropped until the answer is sent, so that the client can read it. */
function readBody(request: IncomingMessage, unfinished: InputBudget): Promise<Buffer> {
  let chunks: Buffer[] = [];
  let length = 0;
  return new Promise((resolve, reject) => {
    let over = false;
    const end = (): void => {
      over = true;
      chunks = [];
      account?.end();
    };
    const refuse = (refusal: ServiceError): void => {
      end();
      reject(refusal);
    };
    const account = unfinished.admit(request.socket.remoteAddress, () => refuse(ENDED));
    if (account === undefined) return refuse(BUSY);
    request.on('data', (chunk: Buffer) => {
      if (over) return;
      length += chunk.length;
      if (length > BODY_BYTES_MAX) return refuse(tooLarge());
      chunks.push(chunk);
      if (length > SMALL_BODY_BYTES) account.unfinished(length, 0);
    });
    request.on('end', () => {
      const body = Buffer.concat(chunks);
      end();
      resolve(body);
    });
    request.on('close', () => refuse(new ServiceError('CANCELED', 'the client closed the connection')));
  });
}

function tooLarge(): ServiceError {
  // The rest of the body is dropped.
  const details: HttpDetails = { httpStatus: 413, headers: { connection: 'close' } };
  return new ServiceError('REQUEST_TOO_LARGE', `the body is too large; at most ${BODY_BYTES_MAX} bytes are allowed`, {
    details: { ...details },
  });
}

function refused(httpStatus: number, message: string): ServiceError {
  return new ServiceError('INVALID_ARGUMENT', message, { details: { httpStatus } satisfies HttpDetails });
}

/** Server-sent events (WHATWG HTML, 9.2). They have no ids: a client that reconnects gets the states again. */
function tell(
  response: ServerResponse,
  events: EventStream,
  { clock, streams }: { readonly clock: Clock; readonly streams: Set<ServerResponse> },
): void {
  response.writeHead(200, { 'content-type': 'text/event-stream', ...ALWAYS });
  response.flushHeaders();
  // HE5.
  const send = (text: string): boolean => response.writableEnded || response.write(text);
  const source = events({
    write: (event, data) => (send(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`) ? 0 : response.writableLength),
  });
  let beat: Timer;
  const scheduleBeat = (): void => {
    beat = clock.setTimer(BEAT_MS, () => {
      send(':\n\n');
      scheduleBeat();
    });
  };
  scheduleBeat();
  streams.add(response);
  response.on('drain', () => source.onDrain());
  response.once('close', () => {
    streams.delete(response);
    beat.cancel();
    source.onClose();
  });
}

const ALWAYS = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' } as const;

function write(response: ServerResponse, { status, headers, body }: ApiAnswer): void {
  const text = `${JSON.stringify(body)}\n`;
  response.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(text),
    ...ALWAYS,
    ...headers,
  });
  response.end(text);
}
