import type { ServiceError } from '@remora/base';

/**
 * What services look like to the transport that carries them. Services know neither gRPC nor deadlines' absolute
 * times; a shell per transport fits them (`node/grpc`).
 *
 * Callbacks, not promises: an unary call must cost little beside its transport.
 */

/** Exactly one of the two is given, once. */
export type CallDone<Response> = (error: ServiceError | undefined, response: Response | undefined) => void;

/** Ends the interest in a call: `done` does not run afterwards. */
export type GiveUp = () => void;

/** Ends a call that takes back what it has done, and answers `why` then, if somebody still waits. */
export type TakeBack = (why?: ServiceError) => void;

export interface CallInfo {
  /** What is left for the whole call, in ms, within the service's limits. */
  readonly timeoutMs: number;
  /** What the caller's own deadline leaves, in ms, without limits; undefined when it set none. */
  readonly callerMs: number | undefined;
  readonly seen: SeenRevision;
}

/** The newest revision that answers on one connection have carried: later ones may not go back behind it. */
export interface SeenRevision {
  newest: number;
}

/** A call with one request and one response. May throw a `ServiceError` before it does anything. */
export type UnaryHandler<Request, Response> = (
  request: Request,
  call: CallInfo,
  done: CallDone<Response>,
) => GiveUp | undefined;

/** Of a call that may wait for as long as its client does. */
export type WaitingHandler<Request, Response> = (
  request: Request,
  call: CallInfo,
  done: CallDone<Response>,
) => TakeBack;

/** The sending half of a stream. */
export interface StreamSink<Response> {
  /** False when the client is behind: send nothing that can wait until `onDrain` of the handler. */
  write(response: Response): boolean;
  /** How many responses were written that the client has not taken yet. */
  unread(): number;
  /** Ends the stream; with an error its status says so. Nothing may be written afterwards. */
  end(error?: ServiceError): void;
}

/** The receiving half of a stream, made by the service for each call. */
export interface StreamHandler<Request> {
  /** False when too much is under way: the transport reads no further until `resumeReading` is called. */
  onRequest(request: Request): boolean;
  onDrain(): void;
  /** The client will send nothing more; it still reads. */
  onHalfClose(): void;
  /** The stream is over, for whichever reason. */
  onClose(): void;
}

export type StreamService<Request, Response> = (
  sink: StreamSink<Response>,
  resumeReading: () => void,
  seen: SeenRevision,
) => StreamHandler<Request>;

export interface TimeoutLimits {
  /** For calls without a deadline of their own. */
  readonly defaultMs: number;
  readonly maxMs: number;
}

/** etcd answers within 5 s plus two election timeouts; the backend takes commands of at most 60 s. */
export const TIMEOUT_LIMITS: TimeoutLimits = { defaultMs: 7_000, maxMs: 60_000 };

export function callInfo(callerMs: number | undefined, limits: TimeoutLimits, seen: SeenRevision): CallInfo {
  return { timeoutMs: callTimeoutMs(callerMs, limits), callerMs, seen };
}

/** How long a call may take whose caller leaves so much time, or sets no deadline. */
export function callTimeoutMs(callerMs: number | undefined, limits: TimeoutLimits): number {
  return Math.max(1, callerMs === undefined ? limits.defaultMs : Math.min(callerMs, limits.maxMs));
}

/** Remembers the revision of an answer that has one, in etcd's header. */
export function noteRevision(seen: SeenRevision, response: unknown): void {
  const { header } = response as { readonly header?: { readonly revision?: number } };
  if (header?.revision !== undefined && header.revision > seen.newest) seen.newest = header.revision;
}
