import type { Bytes, ResidentValue } from '@remora/base';
import type { LockEvent } from './procedures/events.ts';
import type { LockMeter } from './procedures/meter.ts';
import type { LockNames } from './records/keys.ts';
import type { SessionRef } from './types.ts';

/**
 * The transactional view of a range during one command. Procedures are pure functions over it: they use no clock and no
 * randomness, and write only keys under the lock's prefix (`lockSpan`). All calls are synchronous.
 */
export interface LockView {
  /** The revision of the changes of this command. */
  readonly revision: number;
  /**
   * Range time: the leader's monotonic time, which the log continues from term to term. For deadlines of requests only.
   */
  readonly timeMs: number;
  /** The leader's wall time, for display only. */
  readonly wallMs: number;
  get(key: Bytes): Bytes | undefined;
  put(key: Bytes, value: Bytes): void;
  delete(key: Bytes): void;
  /** The same for a row by its name (`lockNames`). It may return the value that was put, in place of its bytes. */
  getNamed(name: string): ResidentValue | undefined;
  putNamed(name: string, value: ResidentValue): void;
  deleteNamed(name: string): void;
  /** Rows in key order, at most `limit` (0: all). */
  scan(start: Bytes, end: Bytes, limit: number): readonly { readonly key: Bytes; readonly value: Bytes }[];
  /** Whether this incarnation of the session is alive (trap 19: the apply that grants checks it again). */
  sessionAlive(session: SessionRef): boolean;
  /**
   * Makes the end of the session call `sessionEnded` for this lock. Idempotent; `detach` undoes it. `isFirst`: no
   * session is attached to the lock yet.
   */
  attach(session: SessionRef, names: LockNames, isFirst: boolean): void;
  detach(session: SessionRef, names: LockNames): void;
  /** May also return true if another session with the same lease id is attached. */
  isAttached(session: SessionRef, names: LockNames): boolean;
  /** Receives the events of the lock; absent when nobody listens. It must change nothing. */
  readonly onEvent?: ((event: LockEvent) => void) | undefined;
  /**
   * Called for a mark that has to be removed once this time has passed (M4); absent when nobody does that. It must
   * change nothing.
   */
  markLeft?(deadlineMs: number): void;
  /**
   * Called before the end of a grant of this version is written; other owners may share the lock by the same version.
   * Absent when nobody needs it. It must change nothing.
   */
  grantEnded?(version: number): void;
  /** Counts what happens; absent when nobody counts. It must change nothing. */
  readonly meter?: LockMeter | undefined;
}
