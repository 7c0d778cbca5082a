import type { Bytes, ResidentValue } from '@remora/base';
import type { LockEvent } from './procedures/events.ts';
import type { LockMeter } from './procedures/meter.ts';
import type { LockNames } from './records/keys.ts';
import type { SessionRef } from './types.ts';

/**
 * A range's transactional view during one command. Procedures are pure functions over it: no clock, no chance, and
 * their writes are confined to keys under the lock's prefix (`lockSpan`). All calls are synchronous.
 */
export interface LockView {
  /** The revision that this command's changes get. */
  readonly revision: number;
  /** Range time: the leader's monotonic time, carried on from term to term by the log; for deadlines of requests only. */
  readonly timeMs: number;
  /** The leader's wall time, for display only. */
  readonly wallMs: number;
  get(key: Bytes): Bytes | undefined;
  put(key: Bytes, value: Bytes): void;
  delete(key: Bytes): void;
  /** The same for a row by its name (`lockNames`); what was put so may be given back as it is, not as bytes. */
  getNamed(name: string): ResidentValue | undefined;
  putNamed(name: string, value: ResidentValue): void;
  deleteNamed(name: string): void;
  /** Rows in key order, at most `limit` (0: all). */
  scan(start: Bytes, end: Bytes, limit: number): readonly { readonly key: Bytes; readonly value: Bytes }[];
  /** Whether this very session is alive (traps 19: re-checked by the apply that grants). */
  sessionAlive(session: SessionRef): boolean;
  /**
   * Makes the session's end call `sessionEnded` for this lock (idempotent), and undoes that. `isFirst`: no session is
   * attached to it.
   */
  attach(session: SessionRef, names: LockNames, isFirst: boolean): void;
  detach(session: SessionRef, names: LockNames): void;
  /** It may say so as well of a lock that another session of the same lease is attached to. */
  isAttached(session: SessionRef, names: LockNames): boolean;
  /** Is told what happens to the lock; absent when nobody listens. It changes nothing. */
  readonly onEvent?: ((event: LockEvent) => void) | undefined;
  /** Is told that there is a mark which has to go once this time has passed (M4); absent where nobody sees to that. It changes nothing. */
  markLeft?(deadlineMs: number): void;
  /**
   * Is told that a grant of this version is not the owner's any more, before that is written; others may share the lock by the
   * same version. Absent where nobody wants to know. It changes nothing.
   */
  grantEnded?(version: number): void;
  /** Counts what happens; absent where nobody counts. It changes nothing. */
  readonly meter?: LockMeter | undefined;
}
