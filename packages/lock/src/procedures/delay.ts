/** Holds that outlive their session by the lock-delay: T1–T4 of `procedures.ts`. */
import type { Bytes } from '@remora/base';
import type { LockView } from '../lock-view.ts';
import { LockKeys, lockOfKey } from '../records/keys.ts';
import { decodeHead, type Hold, mayBeDelayed } from '../records/records.ts';
import { shareAt } from '../records/row-records.ts';
import type { DelayedHold, LockId, LockResult } from '../types.ts';
import { handOver } from './hand-over.ts';
import { type CommandOf, type Procedure, refused } from './procedure.ts';

/** T3. When repeated, or after a forced release, there is nothing to end. */
export function endDelay(procedure: Procedure, { owner, version }: CommandOf<'endDelay'>): LockResult {
  const { rows } = procedure;
  const hold = rows.delayedHold(owner, version);
  if (hold === undefined) return refused('LOCK_NOT_HELD', 'the delay of this hold is over');
  rows.vacate(hold, 'expired');
  handOver(procedure);
  return { type: 'released', depth: 0, version };
}

/** What the end of a session reports about a hold that is delayed from now on. */
export function delayedHold(lock: LockId, { holder, delayMs }: Hold): DelayedHold {
  return { lock, owner: holder.owner, version: holder.version, delayMs };
}

/** All delayed holds in a span of the lock layer's keys. Reads every row of the span. */
export function delayedHolds(view: Pick<LockView, 'scan'>, span: { start: Bytes; end: Bytes }): DelayedHold[] {
  const found: DelayedHold[] = [];
  for (const { key, value } of view.scan(span.start, span.end, 0)) {
    if (!mayBeDelayed(value)) continue;
    const { hold, delayed } = decodeHead(value);
    if (delayed === 0) continue;
    const lock = lockOfKey(key);
    const keys = new LockKeys(lock);
    const { start, end } = keys.shares();
    const holds = hold === undefined ? view.scan(start, end, 0).map((row) => shareAt(keys, row)) : [hold];
    for (const each of holds) if (each.delayed) found.push(delayedHold(lock, each));
  }
  return found;
}
