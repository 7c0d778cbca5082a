/** Changes of the data and the depth of a hold: D1–D3 of `procedures.ts`. */
import { EMPTY_BYTES } from '@remora/base';
import type { Holder, LockResult } from '../types.ts';
import { type CommandOf, granted, type Procedure, refused, SESSION_MESSAGE } from './procedure.ts';

export function setData(procedure: Procedure, command: CommandOf<'setData'>): LockResult {
  return changeHolder(procedure, command, { data: command.data });
}

/** Repeating it, even late, does no harm: only a release ends a hold, however deep it is. */
export function setDepth(procedure: Procedure, command: CommandOf<'setDepth'>): LockResult {
  return changeHolder(procedure, command, { depth: command.depth });
}

/** D2. */
function changeHolder(
  procedure: Procedure,
  { owner, version }: CommandOf<'setData' | 'setDepth'>,
  change: Partial<Pick<Holder, 'data' | 'depth'>>,
): LockResult {
  const { view, rows } = procedure;
  if (!view.sessionAlive(owner.session)) return refused('SESSION_EXPIRED', SESSION_MESSAGE);
  const hold = rows.holdOf(owner);
  if (hold === undefined || hold.holder.version !== version) {
    return refused('LOCK_NOT_HELD', `the owner does not hold the lock by version ${version}`);
  }
  const holder = { ...hold.holder, ...change };
  rows.setHold({ ...hold, holder });
  return granted(procedure, holder);
}

/** D3, F1. */
export function forget({ rows }: Procedure): LockResult {
  const any = rows.head.keepsData || rows.head.forcedOnRecord;
  rows.keepData(EMPTY_BYTES);
  rows.recordForced(undefined);
  return { type: 'forgotten', any };
}
