import type { HoldMode, RefusalCode, Waiter } from '../types.ts';

/** How a grant ended. An upgrade and a downgrade end one, and begin another (`converted`). */
export type GrantEnd = 'released' | 'expired' | 'forced' | 'converted';

/**
 * Counts what happens to locks. Times are differences of the wall times that leaders stamp on entries: for statistics
 * only, and below 0 where clocks were set.
 */
export interface LockMeter {
  /** `waitedMs`: undefined when it did not wait. */
  granted(mode: HoldMode, waitedMs: number | undefined): void;
  ended(mode: HoldMode, how: GrantEnd, heldMs: number): void;
  /** Joined the queue, at this place. */
  queued(mode: Waiter['mode'], position: number): void;
  /** Left the queue without a grant. */
  left(code: RefusalCode): void;
}
