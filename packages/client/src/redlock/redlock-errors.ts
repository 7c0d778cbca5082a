/** Errors of `remora/redlock`. Their classes and names are those of the library `redlock`. */
import { ServiceError } from '@remora/base';
import type { ExecutionStats } from './execution-stats.ts';

/** A resource was held by another lock, or no longer by this one. It is one vote of an attempt. */
export class ResourceLockedError extends Error {
  override readonly name = 'ResourceLockedError';
}

/** An operation failed in all its attempts. */
export class ExecutionError extends Error {
  override readonly name = 'ExecutionError';
  /** One for each attempt: how the cluster voted, with its error. */
  readonly attempts: readonly Promise<ExecutionStats>[];

  constructor(message: string, attempts: readonly Promise<ExecutionStats>[], options?: ErrorOptions) {
    super(message, options);
    this.attempts = attempts;
  }
}

/** The lock is held by somebody else, or no longer by us, so a `ResourceLockedError` says so. */
const LOCKED: ReadonlySet<string> = new Set([
  ...['LOCK_BUSY', 'LOCK_TIMEOUT', 'LOCK_CANCELED', 'LOCK_NOT_HELD', 'LOCK_WRONG_OWNER'],
  ...['SESSION_EXPIRED', 'LEASE_NOT_FOUND'],
]);

/** What the cluster said, as redlock calls it. Other errors stay as they are. */
export function voteOf(error: unknown): Error {
  if (error instanceof ServiceError && LOCKED.has(error.code)) {
    return new ResourceLockedError(error.message, { cause: error });
  }
  return error instanceof Error ? error : new Error(String(error), { cause: error });
}

/** The same request can never succeed: it is wrong, not permitted, or the client is closed. */
export function isHopeless(error: unknown): boolean {
  if (!(error instanceof ServiceError)) return !(error instanceof ResourceLockedError);
  return error.retry === 'no' && error.code !== 'DEADLINE_EXCEEDED' && !LOCKED.has(error.code);
}
