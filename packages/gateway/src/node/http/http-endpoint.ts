import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Identification } from '@remora/auth';
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
import type { SeenRevision } from '../../calls.ts';
import type { EtcdApi } from '../../etcd/etcd-api.ts';
import { jsonError } from '../../etcd/json/json-errors.ts';
import { JsonGateway } from '../../etcd/json/json-gateway.ts';
import type { ApiAnswer, ApiRequest, EventSource, EventStream, LineStream } from '../../http/api-types.ts';
import { HttpApi, type HttpApiDeps } from '../../http/http-api.ts';
import { JSON_LINES } from '../../http/openapi/parts.ts';
import { errorAnswer, type HttpDetails } from '../../http/statuses.ts';
import { WaitSlots } from '../../routing/calls/wait-slots.ts';
import { type HttpCaller, httpCaller, isSecure, renewal, sentTokens } from './http-caller.ts';
import { httpPrincipal } from './http-principal.ts';

/** The largest request is a check of a thousand versions. */
const BODY_BYTES_MAX = 256 * 1024;
/** `/v1/kv/…`, `/v1/kv-import`. */
const KEYS_PATH = '/v1/kv';
/** Lines of one body; a call may take fewer. */
const LINES_MAX = 10_000;
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
/** At least so many of the largest bodies of etcd's gateway fit, and a quarter of them of one address. */
const UNFINISHED_BODIES_MIN = 8;
/** The share of these bytes for one address. */
const ADDRESS_SHARE = 0.25;
/** A renewal or a release is smaller. One body of this size for each connection needs no budget. */
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

const ENDPOINT_LIMITS: Pick<EndpointLimits, 'callsMax'> = { callsMax: CALLS_MAX };

export interface HttpEndpointDeps extends Omit<HttpApiDeps, 'waits'> {
  readonly identification: Identification;
  /** etcd's API, for its JSON gateway. */
  readonly etcd: EtcdApi;
  /** As of the API. */
  readonly requestBytesMax: number;
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
 * HE1. A body has at most `BODY_BYTES_MAX` bytes, or as many as one of etcd's gateway if it has values of keys. It is
 *      JSON, or JSON lines, by its type, which a form of a web page cannot send; for etcd's gateway, see HE6. The
 *      server has refused pages of other sites by then (`request-guard.ts`); there are no CORS headers, so none reads
 *      an answer. All incomplete bodies together have `UNFINISHED_BYTES_MAX`, and those of one address a share of it.
 *      Above that, the body that started first is ended, of that address or of the one that has most (input-budget.ts
 *      IB2), so that the next request is not refused. Small bodies are not counted. The server bounds how long a body
 *      may take.
 * HE2. A client that closes its connection ends its call. A grant in an answer that it did not read is taken back.
 * HE3. The numbers of calls and streams are bounded; further ones are refused at once. Calls that may take long have a
 *      part. A call counts once its body is whole, so clients that do not finish theirs take no place from others.
 * HE4. A client that does not read its events takes up no memory: the source pauses until it does.
 * HE5. An ended stream stays open until its client has read it, and nothing is written to it: Node would end the
 *      process for that.
 * HE6. etcd's JSON gateway takes bodies of any type, because `curl -d` sends that of a form. A form of another site has
 *      an `Origin`, so `request-guard.ts` refuses it (RG4).
 * HE7. The body is read from the first turn on: what comes before somebody reads may be lost. Who asks is found out
 *      meanwhile.
 */
export function createHttpEndpoint(deps: HttpEndpointDeps, limits: Partial<EndpointLimits> = {}): HttpEndpoint {
  const { callsMax } = { ...ENDPOINT_LIMITS, ...limits };
  const { clock, etcd: etcdApi, logger, requestBytesMax } = deps;
  const waits = new WaitSlots(Math.floor(callsMax * WAITS_SHARE), deps.onWaitRefused ?? (() => {}));
  const etcd = new JsonGateway({ api: etcdApi, clock, logger, waits, requestBytesMax });
  const unfinishedBytesMax =
    limits.unfinishedBytesMax ?? Math.max(UNFINISHED_BYTES_MAX, UNFINISHED_BODIES_MIN * etcd.bodyBytesMax);
  const unfinished = new InputBudget(
    {
      // The servers bound the number of connections, and each has one body at a time.
      ...{ connectionsMax: Number.POSITIVE_INFINITY, connectionsPerAddressMax: Number.POSITIVE_INFINITY },
      ...{ bytesMax: unfinishedBytesMax, bytesPerAddressMax: Math.floor(unfinishedBytesMax * ADDRESS_SHARE) },
      messageMs: INPUT_LIMITS.messageMs,
    },
    deps.clock,
    deps.logger,
  );
  const api = new HttpApi({ ...deps, waits });
  const { identification } = deps;
  const parts = { api, etcd, unfinished, identification, seen: new WeakMap<Socket, SeenRevision>() };
  const open = new Map<AbortController, Promise<ApiAnswer>>();
  const streams = new Set<ServerResponse>();
  /** Calls in `open` whose requests are whole (HE3). */
  let running = 0;
  let stopping = false;
  return {
    paths: ['/v1/', '/openapi.json', ...ETCD_PATHS_SERVED],
    get input() {
      return unfinished.stats;
    },
    async handle(request, response) {
      const caller = new AbortController();
      response.once('close', () => caller.abort(new ServiceError('CANCELED', 'the client closed the connection')));
      if (stopping) caller.abort(STOPPING);
      let isRunning = false;
      const begin = (): void => {
        if (running + streams.size >= callsMax) throw BUSY;
        running++;
        isRunning = true;
      };
      const answering = answerOf(parts, request, { signal: caller.signal, begin });
      open.set(caller, answering);
      const answer = await answering;
      open.delete(caller);
      if (isRunning) running--;
      if (MALFORMED.includes(answer.status) && answer.wellFormed !== true) deps.onMalformed?.();
      if (response.closed) return answer.undelivered?.();
      if (answer.events !== undefined) return tell(response, answer.events, { clock: deps.clock, streams });
      if (answer.lines !== undefined) return sendLines(response, answer, { lines: answer.lines, streams });
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

interface Parts {
  readonly identification: Identification;
  readonly api: HttpApi;
  readonly etcd: JsonGateway;
  readonly unfinished: InputBudget;
  /** The newest revision that answers on each connection have carried. */
  readonly seen: WeakMap<Socket, SeenRevision>;
}

interface Call {
  readonly signal: AbortSignal;
  /** Called when the request is whole; throws if there are too many calls. */
  readonly begin: () => void;
}

async function answerOf(parts: Parts, request: IncomingMessage, call: Call): Promise<ApiAnswer> {
  try {
    if (isEtcd(request)) return await etcdAnswerOf(parts, request, call);
    const { method = '', url: target = '', socket } = request;
    const { identification } = parts;
    const hasBody = method === 'POST' || method === 'PUT';
    const [caller, body] = await Promise.all([
      callerOf(request, identification),
      hasBody ? readJson(request, parts) : undefined, // HE7
    ]);
    call.begin();
    const from = { address: socket.remoteAddress, isSecure: isSecure(request) };
    const about = { ...from, trace: traceOf(request), lastEventId: headerText(request, 'last-event-id') };
    const { principal } = caller;
    const answer = await parts.api.handle({ method, target, ...body, signal: call.signal, principal, ...about });
    const renewed = renewal(request, caller, identification);
    return renewed === undefined ? answer : { ...answer, headers: { 'set-cookie': renewed, ...answer.headers } };
  } catch (error) {
    return refusalOf(request, toServiceError(error));
  }
}

/** Whoever logs in or out is nobody: the token that was sent may have expired. */
async function callerOf(request: IncomingMessage, identification: Identification): Promise<HttpCaller> {
  if (!/^\/v1\/log-(?:in|out)(?:\?|$)/.test(request.url ?? '')) return httpCaller(request, identification);
  sentTokens(request);
  return { principal: undefined };
}

/** HE6. */
async function etcdAnswerOf(
  { etcd, unfinished, seen, identification }: Parts,
  request: IncomingMessage,
  { signal, begin }: Call,
): Promise<ApiAnswer> {
  const { method = '', url: target = '', socket } = request;
  const [principal, bytes] = await Promise.all([
    isLogIn(request) ? undefined : httpPrincipal(request, identification),
    method === 'POST' ? readBody(request, unfinished, etcd.bodyBytesMax) : Buffer.alloc(0), // HE7
  ]);
  begin();
  const revision = seen.get(socket) ?? { newest: 0 };
  seen.set(socket, revision);
  const callerMs = grpcTimeoutMs(request.headers['grpc-timeout']);
  return etcd.handle({
    method,
    target,
    text: textOf(bytes),
    callerMs,
    caller: { seen: revision, principal, door: 'http', address: socket.remoteAddress, trace: traceOf(request) },
    signal,
  });
}

/** Node joins a header that is there twice; such a list is no trace context. */
function traceOf(request: IncomingMessage): string | undefined {
  return headerText(request, 'traceparent');
}

function headerText({ headers }: IncomingMessage, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' ? value : undefined;
}

const ETCD_PATHS_SERVED = ['/v3/', '/version'] as const;

function isEtcd({ url = '' }: IncomingMessage): boolean {
  return url.startsWith('/v3/') || /^\/version(?:\?|$)/.test(url);
}

/** A client that sends a token which has expired may log in again. */
function isLogIn({ url = '' }: IncomingMessage): boolean {
  return /^\/v3\/auth\/authenticate(?:\?|$)/.test(url);
}

function refusalOf(request: IncomingMessage, error: ServiceError): ApiAnswer {
  return isEtcd(request) ? jsonError(error) : errorAnswer(error);
}

const GRPC_UNITS_MS: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1_000,
  m: 1,
  u: 0.001,
  n: 0.000_001,
};

/** grpc-gateway takes the deadline of a call from the header `Grpc-Timeout`, in the form of gRPC: `500m` is 500 ms. */
function grpcTimeoutMs(header: string | readonly string[] | undefined): number | undefined {
  const [, digits, unit = ''] = /^(\d{1,8})([HMSmun])$/.exec(String(header ?? '')) ?? [];
  return digits === undefined ? undefined : Number(digits) * (GRPC_UNITS_MS[unit] ?? 0);
}

/** HE1 */
async function readJson(
  request: IncomingMessage,
  { unfinished, etcd }: Parts,
): Promise<Pick<ApiRequest, 'body' | 'lines'>> {
  const type = (request.headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase();
  const isLines = type === JSON_LINES || type === 'application/x-ndjson';
  if (type !== 'application/json' && !isLines) {
    throw refused(415, 'the body is application/json: curl --json, or -H "content-type: application/json"');
  }
  // A body with a value is as large as one of etcd's gateway.
  const bytesMax = (request.url ?? '').startsWith(KEYS_PATH) ? etcd.bodyBytesMax : BODY_BYTES_MAX;
  const bytes = await readBody(request, unfinished, bytesMax);
  const text = textOf(bytes);
  if (!isLines) return bytes.length === 0 ? {} : { body: parsed(text, 'the body') };
  const lines = text.split('\n', LINES_MAX + 1);
  if (lines.length > LINES_MAX) throw refused(413, `the body has more than ${LINES_MAX} lines: split it`);
  return { lines: lines.flatMap((line, i) => (line.trim() === '' ? [] : [parsed(line, `line ${i + 1}`)])) };
}

function parsed(text: string, what: string): unknown {
  try {
    return parseBoundedJson(text);
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause;
    throw new ServiceError('INVALID_ARGUMENT', `${what} is not JSON: ${cause.message}`, { cause });
  }
}

function textOf(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new ServiceError('INVALID_ARGUMENT', 'the body is not JSON: it is not UTF-8', { cause });
  }
}

/** Bytes above a limit are read and dropped until the answer is sent, so that the client can read it. */
function readBody(request: IncomingMessage, unfinished: InputBudget, bytesMax: number): Promise<Buffer> {
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
      if (length > bytesMax) return refuse(tooLarge(bytesMax));
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

function tooLarge(bytesMax: number): ServiceError {
  // The rest of the body is dropped.
  const details: HttpDetails = { httpStatus: 413, headers: { connection: 'close' } };
  return new ServiceError('REQUEST_TOO_LARGE', `the body is too large; at most ${bytesMax} bytes are allowed`, {
    details: { ...details },
  });
}

function refused(httpStatus: number, message: string): ServiceError {
  return new ServiceError('INVALID_ARGUMENT', message, { details: { httpStatus } satisfies HttpDetails });
}

/** Server-sent events (WHATWG HTML, 9.2). Those of locks have no ids: a client that reconnects gets the states. */
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
    write: (event, data, id) => (send(eventText(event, data, id)) ? 0 : response.writableLength),
    end: (event, data) => {
      send(eventText(event, data));
      response.end();
    },
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

function eventText(event: string, data: unknown, id?: number): string {
  return `${id === undefined ? '' : `id: ${id}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** HE4, HE5. The head is sent with the first line, as an error before it has a status of its own. */
function sendLines(
  response: ServerResponse,
  { status, headers }: ApiAnswer,
  { lines, streams }: { readonly lines: LineStream; readonly streams: Set<ServerResponse> },
): void {
  streams.add(response);
  let source: EventSource | undefined;
  response.once('close', () => {
    streams.delete(response);
    source?.onClose();
  });
  const send = (value: object): boolean => {
    if (response.writableEnded) return true;
    if (!response.headersSent) response.writeHead(status, { ...ALWAYS, ...headers });
    return response.write(`${JSON.stringify(value)}\n`);
  };
  source = lines({
    write: send,
    unread: () => response.writableLength,
    end: (error) => {
      if (response.writableEnded) return;
      if (error !== undefined && !response.headersSent) return write(response, error.answer);
      if (error !== undefined) send(error.line);
      else if (!response.headersSent) response.writeHead(status, { ...ALWAYS, ...headers });
      response.end();
    },
  });
  response.on('drain', () => source?.onDrain());
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
