import type { Principal } from '@remora/auth';
import type { ServiceError } from '@remora/base';
import type { Door } from '@remora/protocol';

/**
 * How a transport calls the services. Services know neither gRPC nor absolute deadlines; each transport has a shell
 * that adapts them (`node/grpc`).
 *
 * They use callbacks instead of promises, so that a unary call costs little beside its transport.
 */

/** Called once, with either an error or a response. */
export type CallDone<Response> = (error: ServiceError | undefined, response: Response | undefined) => void;

/** Ends the interest in a call: `done` is not called afterwards. */
export type GiveUp = () => void;

/** Undoes what a call has done, then ends it with `why` if its caller still waits. */
export type TakeBack = (why?: ServiceError) => void;

/** What a call's connection and credentials say of its caller. */
export interface CallerInfo {
  readonly seen: SeenRevision;
  readonly principal: Principal | undefined;
  readonly door?: Door | undefined;
  /** The address of the caller, without its port. */
  readonly address?: string | undefined;
  /** Why the caller could not prove who it is. Only streams that answer that themselves (`Duplex`) begin with it. */
  readonly refusal?: ServiceError | undefined;
  /** The caller's W3C trace context (`traceparent`). */
  readonly trace?: string | undefined;
}

export interface CallInfo extends CallerInfo {
  /** The time for the whole call, in ms, within the service's limits. */
  readonly timeoutMs: number;
  /** The time until the caller's own deadline, in ms, without limits; undefined if it set none. */
  readonly callerMs: number | undefined;
}

/** The newest revision that an answer on one connection has carried. Later answers must not carry an older one. */
export interface SeenRevision {
  newest: number;
}

/** A call with one request and one response. It may throw a `ServiceError` before it does anything. */
export type UnaryHandler<Request, Response> = (
  request: Request,
  call: CallInfo,
  done: CallDone<Response>,
) => GiveUp | undefined;

/** A call that may wait for as long as its client does. */
export type WaitingHandler<Request, Response> = (
  request: Request,
  call: CallInfo,
  done: CallDone<Response>,
) => TakeBack;

/** The sending half of a stream. */
export interface StreamSink<Response> {
  /** Returns false when the client is behind: then send nothing that can wait until the handler's `onDrain`. */
  write(response: Response): boolean;
  /** Returns how many responses the client has not taken yet. */
  unread(): number;
  /** Ends the stream, with the status of `error` if there is one. Nothing may be written afterwards. */
  end(error?: ServiceError): void;
}

/** The receiving half of a stream. The service makes one for each call. */
export interface StreamHandler<Request> {
  /** Returns false when too much is in flight: then the transport reads no further until `resumeReading` is called. */
  onRequest(request: Request): boolean;
  onDrain(): void;
  /** The client sends no more requests; it still reads responses. */
  onHalfClose(): void;
  /** The stream has ended, for any reason. */
  onClose(): void;
}

export type StreamService<Request, Response> = (
  sink: StreamSink<Response>,
  resumeReading: () => void,
  caller: CallerInfo,
) => StreamHandler<Request>;

export interface TimeoutLimits {
  /** For calls without a deadline of their own. */
  readonly defaultMs: number;
  readonly maxMs: number;
}

/** etcd answers within 5 s plus two election timeouts; the backend takes time-outs of at most 60 s. */
export const TIMEOUT_LIMITS: TimeoutLimits = { defaultMs: 7_000, maxMs: 60_000 };

export function callInfo(
  callerMs: number | undefined,
  limits: TimeoutLimits,
  { seen, principal, door, address, trace }: CallerInfo,
): CallInfo {
  return { timeoutMs: callTimeoutMs(callerMs, limits), callerMs, seen, principal, door, address, trace };
}

/** Returns the time for a call whose caller leaves `callerMs`, or sets no deadline. */
export function callTimeoutMs(callerMs: number | undefined, limits: TimeoutLimits): number {
  return Math.max(1, callerMs === undefined ? limits.defaultMs : Math.min(callerMs, limits.maxMs));
}

/** Remembers the revision in etcd's header of a response, if it has one. */
export function noteRevision(seen: SeenRevision, response: unknown): void {
  const { header } = response as { readonly header?: { readonly revision?: number } };
  if (header?.revision !== undefined && header.revision > seen.newest) seen.newest = header.revision;
}
