/** Bounds of the lock layer. Changing one that apply reads changes replicated behaviour. */
export const NAMESPACE_BYTES_MAX = 255;
/** The namespace of a lock whose caller names none. */
export const DEFAULT_NAMESPACE = 'default';
export const NAME_BYTES_MAX = 1_024;
export const TOKEN_BYTES_MAX = 128;
export const DATA_BYTES_MAX = 4_096;
/** The longest lock-delay. */
export const LOCK_DELAY_MAX_MS = 60_000;
/** `by` and `reason` of a forced release. */
export const FORCED_BY_BYTES_MAX = 128;
export const FORCED_REASON_BYTES_MAX = 1_024;
export const DEPTH_MAX = 1_000_000;
/** Waiters of one lock; above it an acquire is refused with RESOURCE_EXHAUSTED. */
export const WAITERS_MAX = 100_000;
/** Owners that may share one lock; one more waits. */
export const SHARERS_MAX = 100_000;
/**
 * Owners that wait to pass one lock, or have passed and not confirmed it; one more is refused with RESOURCE_EXHAUSTED.
 * One step releases all of them. A sharer that releases the lock in order to pass has room up to SHARERS_MAX.
 */
export const BARRIER_WAITERS_MAX = 10_000;
/** `by`, `reason` and `forMs` of a revocation. */
export const REVOKER_BYTES_MAX = 128;
export const REASON_BYTES_MAX = 256;
export const REVOKE_MAX_MS = 86_400_000;
/** Permits of one semaphore. */
export const PERMITS_MAX = 1_000_000;
/** Marks of one lock; above it the mark that ends first is dropped (M4 of `procedures.ts`). */
export const MARKS_MAX = 100_000;
/** Ended marks that one command clears: more than a command can leave, so that they do not accumulate. */
export const MARKS_CLEARED_MAX = 16;
/** The most holders, and the most waiters, that `show` and `list` return for one lock. */
export const SHOW_OWNERS_MAX = 1_000;
export const LIST_OWNERS_MAX = 10;
export const LIST_LIMIT_MAX = 1_000;
/** Locks that one search looks at: a few milliseconds of the leader's time. */
export const SEARCH_LOOKS_MAX = 1_000;
export const CHECKS_MAX = 1_000;
/** Lease ids are opaque numbers of 63 bits. */
export const LEASE_MAX = 2n ** 63n - 1n;
