import { type Clock, type ErrorCode, ServiceError } from '@remora/base';
import type { LockCommand, LockQuery, LockQueryResult, LockResult, SessionRef } from '@remora/lock';
import {
  type Command,
  type CommandResult,
  NO_OWNER,
  type Query,
  type QueryResult,
  type SessionInfo,
} from '@remora/protocol';
import type { Asked, Backend, BackendDone, RequestTerms } from '../backend.ts';
import { TIMEOUT_LIMITS } from '../calls.ts';
import { checkSessions } from '../pipe/validate.ts';

const TIMEOUT_MS = TIMEOUT_LIMITS.defaultMs;
/** How long a command with the caller's request id is applied once; below the maximum of ranges. */
const ONCE_MS = 45_000;

/** A session, and when the last renewal that a range acknowledged was sent. */
export interface Renewal {
  readonly ref: SessionRef;
  readonly ttlMs: number;
  readonly atMs: number;
}

/** The calls of the JSON API to ranges, as promises. An aborted signal ends the wait for an answer, not the command. */
export class RangeCalls {
  readonly #backend: Backend;
  readonly #clock: Clock;
  readonly #asked: Asked;

  /** `asked`: for whom it calls. */
  constructor(backend: Backend, clock: Clock, asked: Asked) {
    this.#backend = backend;
    this.#asked = asked;
    this.#clock = clock;
  }

  async lock(command: LockCommand, options: Partial<RequestTerms> = {}, signal?: AbortSignal): Promise<LockResult> {
    const { result } = await this.#command({ type: 'lock', command }, 'lock', options, signal);
    return result;
  }

  /**
   * Options for a command that its caller may repeat with the same id; ranges remember it for longer than a call takes.
   */
  once(requestId: string): Partial<RequestTerms> {
    const nowMs = this.#backend.rangeTimeMs();
    // If the range's time is unknown, the deadline follows from the time-out.
    return nowMs === undefined ? { requestId, timeoutMs: ONCE_MS } : { requestId, deadlineMs: nowMs + ONCE_MS };
  }

  async ask<Type extends LockQuery['type']>(
    query: Extract<LockQuery, { readonly type: Type }>,
    options: Pick<RequestTerms, 'ofHeartbeat'> = {},
  ): Promise<Extract<LockQueryResult, { readonly type: Type }>> {
    const { result } = await this.#query({ type: 'lock', query }, 'lock', options);
    if (result.type === query.type) return result as Extract<LockQueryResult, { readonly type: Type }>;
    throw new ServiceError('INTERNAL', `the range answered with "${result.type}", which does not fit the request`);
  }

  /** Opens a session; one only for all calls with the same `requestId`. */
  async open(
    session: { readonly id: bigint; readonly ttlMs: number; readonly attributes: Readonly<Record<string, string>> },
    requestId?: string,
  ): Promise<Renewal> {
    const atMs = this.#clock.monotonicMs();
    const options = requestId === undefined ? {} : { requestId };
    const command = { type: 'leaseGrant', ...session, owner: NO_OWNER } as const;
    const { id, incarnation, ttlMs } = await this.#command(command, 'leaseGrant', options);
    return { ref: { lease: id, incarnation }, ttlMs, atMs };
  }

  /** Renews a session; incarnation 0: the present one. @throws ServiceError SESSION_EXPIRED */
  async renew({ lease, incarnation }: SessionRef): Promise<Renewal> {
    const atMs = this.#clock.monotonicMs();
    try {
      const renewed = await this.#query({ type: 'leaseKeepAlive', id: lease, incarnation }, 'leaseKeepAlive');
      if (renewed.ttlMs < 0) throw sessionOver();
      return { ref: { lease, incarnation: renewed.incarnation }, ttlMs: renewed.ttlMs, atMs };
    } catch (error) {
      throw isSessionOver(error) ? sessionOver(error) : error;
    }
  }

  /** `owner`: only those of this user; undefined: of all. */
  sessions(after: bigint, limit: number, owner?: string): Promise<Extract<QueryResult, { readonly type: 'sessions' }>> {
    const whose = owner === undefined ? {} : { owner };
    const query = { type: 'sessions', after, limit, attributes: {}, ...whose } as const;
    checkSessions(query);
    return this.#query(query, 'sessions');
  }

  session(id: bigint): Promise<Extract<QueryResult, { readonly type: 'session' }>> {
    return this.#query({ type: 'session', id, incarnation: 0 }, 'session');
  }

  /** Resolves with undefined if the session has ended. */
  async sessionInfo({ lease, incarnation }: SessionRef): Promise<SessionInfo | undefined> {
    // A list of one, which starts with it: that is cheaper than a query with its locks.
    const [info] = (await this.sessions(lease - 1n, 1)).sessions;
    return info?.id === lease && info.incarnation === incarnation ? info : undefined;
  }

  /** Ends a session and releases its locks. Resolves with false if it had ended before. */
  async close({ lease, incarnation }: SessionRef): Promise<boolean> {
    try {
      await this.#command({ type: 'leaseRevoke', id: lease, incarnation }, 'leaseRevoke', {});
      return true;
    } catch (error) {
      if (isSessionOver(error)) return false;
      throw error;
    }
  }

  /** The result of a query, with the revision of the answer. */
  read<Type extends QueryResult['type']>(
    query: Query,
    type: Type,
    options: Pick<RequestTerms, 'ofHeartbeat' | 'current'> = {},
    signal?: AbortSignal,
  ): Promise<Revised<Extract<QueryResult, { readonly type: Type }>>> {
    const all = { timeoutMs: TIMEOUT_MS, ...options, ...this.#asked };
    return answered<QueryResult, Type>(type, (done) => this.#backend.query(query, all, done), signal);
  }

  /** The result of a command, with the revision of the answer: that of the change, if there was one. */
  write<Type extends CommandResult['type']>(
    command: Command,
    type: Type,
    options: Partial<RequestTerms>,
    signal?: AbortSignal,
  ): Promise<Revised<Extract<CommandResult, { readonly type: Type }>>> {
    const all = { timeoutMs: TIMEOUT_MS, ...options, ...this.#asked };
    return answered<CommandResult, Type>(type, (done) => this.#backend.command(command, all, done), signal);
  }

  async #command<Type extends CommandResult['type']>(
    command: Command,
    type: Type,
    options: Partial<RequestTerms>,
    signal?: AbortSignal,
  ): Promise<Extract<CommandResult, { readonly type: Type }>> {
    return (await this.write(command, type, options, signal)).result;
  }

  async #query<Type extends QueryResult['type']>(
    query: Query,
    type: Type,
    options: Pick<RequestTerms, 'ofHeartbeat'> = {},
  ): Promise<Extract<QueryResult, { readonly type: Type }>> {
    return (await this.read(query, type, options)).result;
  }
}

/** A result, and the revision of the answer that brought it. */
export interface Revised<Result> {
  readonly result: Result;
  readonly revision: number;
}

function answered<Result extends CommandResult | QueryResult, Type extends Result['type']>(
  type: Type,
  start: (done: BackendDone<Result>) => () => void,
  signal?: AbortSignal,
): Promise<Revised<Extract<Result, { readonly type: Type }>>> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const onAbort = (): void => {
      giveUp();
      reject(signal?.reason);
    };
    signal?.addEventListener('abort', onAbort, { once: true });
    const giveUp = start((error, reply) => {
      signal?.removeEventListener('abort', onAbort);
      const result = reply?.result;
      if (reply !== undefined && result?.type === type) {
        return resolve({ result: result as Extract<Result, { readonly type: Type }>, revision: reply.revision });
      }
      reject(error ?? new ServiceError('INTERNAL', `the range answered ${type} with ${String(result?.type)}`));
    });
  });
}

/** Throws the refusal of a command or query, if there is one. */
export function refuse(refusal: { readonly code: ErrorCode; readonly message: string } | undefined): void {
  if (refusal !== undefined) throw new ServiceError(refusal.code, refusal.message);
}

/** Returns the result of a lock if it has the type; throws the refusal otherwise. */
export function unlessRefused<Type extends LockResult['type']>(
  result: LockResult,
  type: Type,
): Extract<LockResult, { readonly type: Type }> {
  if (result.type === type) return result as Extract<LockResult, { readonly type: Type }>;
  if (result.type === 'refused') refuse(result);
  throw new ServiceError('INTERNAL', `the lock answered with "${result.type}", which does not fit the request`);
}

function isSessionOver(error: unknown): boolean {
  return error instanceof ServiceError && error.code === 'LEASE_NOT_FOUND';
}

export function sessionOver(cause?: unknown): ServiceError {
  return new ServiceError('SESSION_EXPIRED', 'the session has ended, and its locks were released', { cause });
}
