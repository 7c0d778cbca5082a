/** Bounds of the lock layer. A change to one that apply reads is a change to replicated behaviour. */
export const NAMESPACE_BYTES_MAX = 255;
/** The namespace of a lock whose caller names none. */
export const DEFAULT_NAMESPACE = 'default';
export const NAME_BYTES_MAX = 1_024;
export const TOKEN_BYTES_MAX = 128;
export const DATA_BYTES_MAX = 4_096;
/** How long a lock may keep others off after the session of its holder has ended. */
export const LOCK_DELAY_MAX_MS = 60_000;
/** Of who takes a lock by force, and of why. */
export const FORCED_BY_BYTES_MAX = 128;
export const FORCED_REASON_BYTES_MAX = 1_024;
export const DEPTH_MAX = 1_000_000;
/** Waiters of one lock; beyond it an acquire is refused with RESOURCE_EXHAUSTED. */
export const WAITERS_MAX = 100_000;
/** Who may share one lock; one more waits. */
export const SHARERS_MAX = 100_000;
/**
 * Who waits for one lock to be free without queueing for it, and who has passed and has not said that it knows; one more is
 * refused with RESOURCE_EXHAUSTED. All are let through in one step. Who shares the lock and gives it back to wait so has
 * room for it up to SHARERS_MAX.
 */
export const BARRIER_WAITERS_MAX = 10_000;
/** Of a request to let go of a lock: who asks, why, and for how long. */
export const REVOKER_BYTES_MAX = 128;
export const REASON_BYTES_MAX = 256;
export const REVOKE_MAX_MS = 86_400_000;
/** Permits of one semaphore. */
export const PERMITS_MAX = 1_000_000;
/** Marks of one lock; beyond it the one that ends first gives way (see `procedures.ts`, M4). */
export const MARKS_MAX = 100_000;
/** Marks past their end that one command clears. More than it can leave, so that they never pile up. */
export const MARKS_CLEARED_MAX = 16;
/** Holders, and waiters, that `show` and `list` return per lock. */
export const SHOW_OWNERS_MAX = 1_000;
export const LIST_OWNERS_MAX = 10;
export const LIST_LIMIT_MAX = 1_000;
export const CHECKS_MAX = 1_000;
/** Lease ids are opaque numbers of 63 bits. */
export const LEASE_MAX = 2n ** 63n - 1n;
