import type { ServiceError } from '@remora/base';
import type { CallHandle, CallOptions, Done, Method } from './rpc.ts';

/**
 * Prepares a link before calls use it, for example by a log-in.
 *
 * LG1. Only the guard's own calls leave before it admits the link. Everything else waits, within the link's limits.
 * LG2. When the peer refuses a call as UNAUTHENTICATED, the link is held again until its guard admits it. The guard's
 *      own calls, and calls that left before the link was last held, do not count: what they say is out of date.
 * LG3. A guard that refuses a link closes it. Calls that waited end with UNAVAILABLE, or with the refusal itself if
 *      that is final (`isFinalRefusal`).
 */
export interface LinkGuard {
  /** The link is open and held. */
  opened(): void;
  /** The peer refused a call, and the link is held again (LG2). */
  refused(): void;
  /** The link has ended. */
  closed(): void;
}

/** A link, as its guard uses it. */
export interface GuardedLink {
  /** A call that does not wait for the guard. */
  call<Request, Reply>(
    method: Method<Request, Reply>,
    request: Request,
    options: CallOptions,
    done: Done<Reply>,
  ): CallHandle;
  /** Sends what waits, and lets later calls pass. */
  admit(): void;
  /** Closes the link (LG3). */
  refuse(error: ServiceError): void;
}

/** Makes the guard of a new link to the peer at `address`. */
export type LinkGuardFactory = (link: GuardedLink, address: string) => LinkGuard;

/** The detail of an error that ends calls for good, before they were sent (LG3). */
export const FINAL_REFUSAL = 'refusedLogIn';

export function isFinalRefusal({ details }: ServiceError): boolean {
  return details?.[FINAL_REFUSAL] === true;
}
