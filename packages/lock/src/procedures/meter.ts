import type { HoldMode, RefusalCode, Waiter } from '../types.ts';

/** How a grant ended. An upgrade and a downgrade end one, and begin another (`converted`). */
export type GrantEnd = 'released' | 'expired' | 'forced' | 'converted';

/**
 * Counts what happens to locks. Times are differences of the wall times that leaders stamp on entries: for statistics
 * only, and negative where a clock was set back.
 */
export interface LockMeter {
  /** `waitedMs`: how long the owner waited; undefined if it did not. */
  granted(mode: HoldMode, waitedMs: number | undefined): void;
  ended(mode: HoldMode, how: GrantEnd, heldMs: number): void;
  /** An owner joined the queue at this position. */
  queued(mode: Waiter['mode'], position: number): void;
  /** An owner left the queue without a grant. */
  left(code: RefusalCode): void;
}
