/** What is shown with a lock, and stays with it: D1–D3 of `procedures.ts`. */
import { EMPTY_BYTES } from '@remora/base';
import { type CommandOf, granted, type Procedure, refused, SESSION_MESSAGE } from './procedure.ts';
import type { LockResult } from './types.ts';

/** D2. */
export function setData(procedure: Procedure, { owner, version, data }: CommandOf<'setData'>): LockResult {
  const { view, rows } = procedure;
  if (!view.sessionAlive(owner.session)) return refused('SESSION_EXPIRED', SESSION_MESSAGE);
  const hold = rows.holdOf(owner);
  if (hold === undefined || hold.holder.version !== version) {
    return refused('LOCK_NOT_HELD', `the owner does not hold the lock by the grant of version ${version}`);
  }
  rows.setHold({ ...hold, holder: { ...hold.holder, data } });
  return granted(procedure, hold.holder);
}

/** D3, F1. */
export function forget({ rows }: Procedure): LockResult {
  const any = rows.head.keepsData || rows.head.forcedOnRecord;
  rows.keepData(EMPTY_BYTES);
  rows.recordForced(undefined);
  return { type: 'forgotten', any };
}
