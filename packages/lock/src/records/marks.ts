/** The marks of a lock (M1–M4 of `procedures.ts`): by owner, in its row, and by their end, in rows of their own. */
import type { Bytes } from '@remora/base';
import { MARKS_CLEARED_MAX, MARKS_MAX } from '../limits.ts';
import type { LockView } from '../lock-view.ts';
import type { LockCommand, LockId, Owner } from '../types.ts';
import { isMarkKey, LockKeys, lockOfKey } from './keys.ts';
import type { Head } from './records.ts';
import { encodeOwner, type Mark, NOTHING_OWNED, type OwnerRecord } from './row-records.ts';

/** What marks need of the records of a lock during one command. */
export interface MarkedLock {
  readonly view: Pick<LockView, 'put' | 'delete' | 'scan' | 'timeMs' | 'markLeft'>;
  readonly keys: LockKeys;
  readonly head: Head;
  owner(owner: Owner): OwnerRecord;
  putOwner(owner: Owner, record: OwnerRecord): void;
  /** The head has changed, and has to be written. */
  changed(): void;
}

export class Marks {
  readonly #lock: MarkedLock;

  constructor(lock: MarkedLock) {
    this.#lock = lock;
  }

  /** Leaves a mark, merged with a live one of the same owner: the later end and the higher number. */
  leave(owner: Owner, mark: Mark): void {
    const { view, keys, head } = this.#lock;
    const record = this.#lock.owner(owner);
    const before = record.mark;
    const live = before !== undefined && before.deadlineMs >= view.timeMs;
    const attempt = Math.max(mark.attempt, live ? before.attempt : 0);
    const deadlineMs = Math.max(mark.deadlineMs, live ? before.deadlineMs : 0);
    if (before !== undefined) {
      if (before.attempt === attempt && before.deadlineMs === deadlineMs) return;
      this.drop(owner, before.deadlineMs);
    } else if (head.marks >= MARKS_MAX) {
      this.#clear({ limit: 1, endedBeforeMs: Number.POSITIVE_INFINITY });
    }
    view.put(keys.mark(owner, deadlineMs), encodeOwner(NOTHING_OWNED));
    this.#lock.putOwner(owner, { ...record, mark: { attempt, deadlineMs } });
    head.marksDueMs = head.marks === 0 ? deadlineMs : Math.min(head.marksDueMs, deadlineMs);
    head.marks += 1;
    this.#lock.changed();
    view.markLeft?.(deadlineMs);
  }

  /** M4. Clears some of the marks whose end has passed. */
  clearEnded(): void {
    this.#clear({ limit: MARKS_CLEARED_MAX, endedBeforeMs: this.#lock.view.timeMs });
  }

  /** Removes the row by its end; the caller updates the owner's row. */
  drop(owner: Owner, deadlineMs: number): void {
    this.#lock.view.delete(this.#lock.keys.mark(owner, deadlineMs));
    this.#lock.head.marks -= 1;
    this.#lock.changed();
  }

  #clear(which: { readonly limit: number; readonly endedBeforeMs: number }): void {
    const { view, keys, head } = this.#lock;
    const span = keys.marks();
    head.marksDueMs = 0;
    // One row more than are cleared tells when the next mark ends.
    let left = which.limit;
    for (const row of view.scan(span.start, span.end, which.limit + 1)) {
      const { owner, deadlineMs } = keys.markOf(row.key);
      if (left === 0 || deadlineMs >= which.endedBeforeMs) {
        head.marksDueMs = deadlineMs;
        break;
      }
      left -= 1;
      const record = this.#lock.owner(owner);
      this.drop(owner, deadlineMs);
      this.#lock.putOwner(owner, { ...record, mark: undefined });
    }
    this.#lock.changed();
  }
}

/** A lock that has a mark, and when that ends. */
export interface MarkedUntil {
  readonly lock: LockId;
  readonly deadlineMs: number;
}

/** The mark of a row of the lock layer, by its key; undefined if the row is not a mark. */
export function markOfRow(key: Bytes): MarkedUntil | undefined {
  if (!isMarkKey(key)) return undefined;
  const lock = lockOfKey(key);
  return { lock, deadlineMs: new LockKeys(lock).markOf(key).deadlineMs };
}

/** The mark of a lock that ends first; undefined when it has none. */
export function firstMark(
  view: Pick<LockView, 'scan'>,
  lock: LockId,
): { readonly owner: Owner; readonly deadlineMs: number } | undefined {
  const keys = new LockKeys(lock);
  const { start, end } = keys.marks();
  const [row] = view.scan(start, end, 1);
  return row && keys.markOf(row.key);
}

/**
 * A command that clears marks whose end has passed, as every command on the lock does, and changes nothing else: it
 * names a hold that cannot exist, as the version of a grant is above the revision at which its session was granted,
 * which is 1 or more.
 */
export function clearingOfMarks(lock: LockId, owner: Owner): LockCommand {
  return { type: 'endDelay', lock, owner, version: 1 };
}
