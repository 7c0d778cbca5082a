/** Sends one request through each door of a node, and reads from the answer whether it was let in. */
import { type ServiceError as GrpcError, Metadata } from '@grpc/grpc-js';
import type { ServiceError } from '@remora/base';
import type { LinkCaller, Method as PipeMethod } from '@remora/protocol';
import type { Verdict, Who } from './verdicts.ts';
import type { World } from './world.ts';

/** A method of a generated service. */
export interface Method<Request, Response> {
  readonly path: string;
  readonly requestStream: boolean;
  readonly responseStream: boolean;
  readonly requestSerialize: (value: Request) => Buffer;
  readonly requestDeserialize: (value: Buffer) => Request;
  readonly responseDeserialize: (value: Buffer) => Response;
}

export interface Answer<Response = unknown> {
  readonly verdict: Verdict;
  /** What the verdict was read from. */
  readonly says: string;
  readonly response?: Response;
}

const CALL_MS = 30_000;
/** Of HTTP, and of gRPC. An answer that says nothing about the caller's rights fails the test. */
const HTTP_UNDECIDED = [404, 405, 415, 429, 500, 503, 504];
const GRPC_UNDECIDED = [1, 4, 8, 13, 14];
const USER_EMPTY = 'etcdserver: user name is empty';
const DENIED = 'etcdserver: permission denied';

/** The missing fields of the request have the values that they have when they are not sent. */
export function whole<Request>({ requestDeserialize }: Method<Request, unknown>, given: Partial<Request>): Request {
  return { ...requestDeserialize(Buffer.alloc(0)), ...given };
}

/** The first answer of a stream counts. */
export function askGrpc<Request, Response>(
  world: World,
  method: Method<Request, Response>,
  given: Partial<Request>,
  who: Who,
): Promise<Answer<Response>> {
  const { path, requestSerialize, responseDeserialize } = method;
  const request = whole(method, given);
  const metadata = new Metadata();
  const token = world.token(who);
  if (token !== undefined) metadata.set('token', token);
  const options = { deadline: Date.now() + CALL_MS };
  return new Promise((resolve, reject) => {
    const failed = (error: GrpcError): void => {
      try {
        resolve(fromStatus(error.code, error.details));
      } catch (undecided) {
        reject(undecided);
      }
    };
    const told = (response: Response): void => resolve({ ...fromMessage(response), response });
    const codec = [path, requestSerialize, responseDeserialize] as const;
    if (!method.requestStream && !method.responseStream) {
      world.grpc.makeUnaryRequest(...codec, request, metadata, options, (error, response) =>
        error === null ? told(response as Response) : failed(error),
      );
      return;
    }
    const duplex = method.requestStream ? world.grpc.makeBidiStreamRequest(...codec, metadata, options) : undefined;
    const stream = duplex ?? world.grpc.makeServerStreamRequest(...codec, request, metadata, options);
    stream.on('error', failed);
    stream.once('data', (response: Response) => {
      told(response);
      stream.cancel();
    });
    duplex?.write(request);
  });
}

function fromStatus(code: number, message: string): Answer<never> {
  const says = `${code} ${message}`;
  if (code === 16 || (code === 3 && message === USER_EMPTY)) return { verdict: 'UNAUTHENTICATED', says };
  if (code === 7) return { verdict: 'PERMISSION_DENIED', says };
  if (code === 3) return { verdict: 'INVALID_ARGUMENT', says };
  if (GRPC_UNDECIDED.includes(code)) throw new Error(`this says nothing about rights: ${says}`);
  return { verdict: 'allowed', says };
}

/** Some streams say in a message that they refuse. */
function fromMessage(message: unknown): Pick<Answer, 'verdict' | 'says'> {
  const { cancelReason, cancel_reason, errorCode } = message as Readonly<Record<string, string | undefined>>;
  const says = (cancelReason || cancel_reason || errorCode || 'done').replace(/^rpc error: code = \w+ desc = /, '');
  if (says === USER_EMPTY || says === 'UNAUTHENTICATED') return { verdict: 'UNAUTHENTICATED', says };
  if (says === DENIED || says === 'PERMISSION_DENIED') return { verdict: 'PERMISSION_DENIED', says };
  return { verdict: 'allowed', says };
}

export interface HttpRequest {
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
  /** In place of `body`: JSON lines. */
  readonly lines?: readonly object[];
}

/** etcd's JSON gateway. */
export async function askJson(world: World, path: string, body: unknown, who: Who): Promise<Answer> {
  const { status, first } = await fetched(world, { method: 'POST', path, body }, who);
  const { code, message, error, result } = JSON.parse(first) as {
    readonly code?: number;
    readonly message?: string;
    readonly error?: { readonly code: number; readonly message: string } | string;
    readonly result?: unknown;
  };
  if (typeof error === 'object') return fromStatus(error.code, error.message);
  if (status !== 200) return fromStatus(code ?? 2, message ?? first);
  return fromMessage(result ?? {});
}

/** Remora's own routes, and what is served beside them. */
export async function askHttp(world: World, request: HttpRequest, who: Who, port?: string): Promise<Answer> {
  const { status, first } = await fetched(world, request, who, port);
  const says = `${status} ${first.slice(0, 300)}`;
  const event = /^event: error\ndata: .*"code":"(UNAUTHENTICATED|PERMISSION_DENIED)"/.exec(first)?.[1];
  if (event !== undefined) return { verdict: event as Verdict, says };
  if (status === 401) return { verdict: 'UNAUTHENTICATED', says };
  if (status === 403) return { verdict: 'PERMISSION_DENIED', says };
  if (status === 400) return { verdict: 'INVALID_ARGUMENT', says };
  // Something that is not there was looked for: the caller was allowed to. A path that is not there is another matter.
  if (status === 404 && !first.includes('"UNIMPLEMENTED"')) return { verdict: 'allowed', says };
  if (HTTP_UNDECIDED.includes(status)) throw new Error(`this says nothing about rights: ${says}`);
  return { verdict: 'allowed', says };
}

function bodyOf({ body, lines }: HttpRequest): { readonly type?: string; readonly body?: string } {
  if (lines !== undefined)
    return { type: 'application/jsonl', body: lines.map((line) => JSON.stringify(line)).join('\n') };
  return body === undefined ? {} : { type: 'application/json', body: JSON.stringify(body) };
}

/** The first part of a stream counts. */
async function fetched(world: World, request: HttpRequest, who: Who, port = world.cluster.node(1).http) {
  const { method, path } = request;
  const { type: sent, body } = bodyOf(request);
  const token = world.token(who);
  const over = new AbortController();
  const response = await fetch(`http://${port}${path}`, {
    method,
    headers: {
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(sent !== undefined && { 'content-type': sent }),
    },
    ...(body !== undefined && { body }),
    signal: AbortSignal.any([over.signal, AbortSignal.timeout(CALL_MS)]),
  });
  const { status } = response;
  const type = response.headers.get('content-type') ?? '';
  const isStream = response.headers.get('content-length') === null;
  if (!isStream) return { status, first: await response.text() };
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  const end = type === 'text/event-stream' ? '\n\n' : '\n';
  let first = '';
  while (!first.includes(end)) {
    const part = await reader?.read();
    if (part === undefined || part.done) break;
    first += part.value;
  }
  over.abort();
  reader?.cancel().catch(() => {});
  return { status, first: first.slice(0, first.indexOf(end) + 1) };
}

export async function askPipe<Request, Reply>(
  world: World,
  method: PipeMethod<Request, Reply>,
  request: Request,
  who: Who | LinkCaller,
): Promise<Answer<Reply>> {
  const pipe = typeof who === 'string' ? await world.pipe(who) : who;
  return new Promise((resolve, reject) => {
    pipe.call(method, request, { timeoutMs: CALL_MS }, (error, response) => {
      try {
        resolve({ ...fromError(error), ...(response !== undefined && { response }) });
      } catch (undecided) {
        reject(undecided);
      }
    });
  });
}

/** The first message of the stream, or its end, counts. */
export async function openPipe<Request, Message>(
  world: World,
  method: PipeMethod<Request, Message>,
  request: Request,
  who: Who,
): Promise<Answer> {
  const pipe = await world.pipe(who);
  const error = await new Promise<ServiceError | undefined>((resolve) => {
    const stream = pipe.openStream(
      method,
      request,
      () => {
        resolve(undefined);
        stream.cancel();
      },
      resolve,
    );
  });
  return fromError(error);
}

function fromError(error: ServiceError | undefined): Answer<never> {
  if (error === undefined) return { verdict: 'allowed', says: 'done' };
  const { code, message } = error;
  const says = `${code} ${message}`;
  switch (code) {
    case 'UNAUTHENTICATED':
    case 'PERMISSION_DENIED':
    case 'INVALID_ARGUMENT':
      return { verdict: code, says };
    case 'UNAVAILABLE':
    case 'DEADLINE_EXCEEDED':
    case 'UNKNOWN_OUTCOME':
    case 'RESOURCE_EXHAUSTED':
    case 'CANCELED':
    case 'INTERNAL':
      throw new Error(`this says nothing about rights: ${says}`);
    default:
      return { verdict: 'allowed', says };
  }
}
