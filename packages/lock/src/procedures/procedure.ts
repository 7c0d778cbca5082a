/** What the procedures share; the rules are in `procedures.ts`. */

import { sameOwner } from '../identity.ts';
import type { LockView } from '../lock-view.ts';
import { publicOwner } from '../public-owner.ts';
import type { LockRows } from '../records/lock-rows.ts';
import type { Hold } from '../records/records.ts';
import type { Mark, OwnerRecord } from '../records/row-records.ts';
import type { LockCommand, LockId, LockNotice, LockResult, Owner } from '../types.ts';

export type CommandOf<T extends LockCommand['type']> = Extract<LockCommand, { readonly type: T }>;
export type Refused = Extract<LockResult, { readonly type: 'refused' }>;

/** One command, or the end of a session, as it is applied to one lock. */
export interface Procedure {
  readonly view: LockView;
  readonly rows: LockRows;
  readonly lock: LockId;
  /** Answers to open calls of other owners. */
  readonly notices: LockNotice[];
}

export const SESSION_MESSAGE = 'the session has ended, and its locks were released';

export function granted({ rows }: Pick<Procedure, 'rows'>, { version, depth, lockTimeMs }: Hold['holder']): LockResult {
  if (!rows.head.keepsData) return { type: 'granted', version, depth, lockTimeMs };
  return { type: 'granted', version, depth, lockTimeMs, keptData: rows.keptData };
}

export function refused(code: Refused['code'], message: string): Refused {
  return { type: 'refused', code, message };
}

/** Answers an owner's open call. A refusal means that the owner was waiting, and no longer does. */
export function notify(procedure: Procedure, owner: Owner, result: LockResult): void {
  const { lock, notices } = procedure;
  notices.push({ lock, owner, result });
  if (result.type === 'refused') leaves(procedure, owner, result.code);
}

/** Reports to listeners and to the meter that an owner no longer waits. */
export function leaves({ view }: Procedure, owner: Owner, code: Refused['code']): void {
  view.meter?.left(code);
  view.onEvent?.({ type: 'left', owner: publicOwner(owner), code });
}

export function waitIsOver(view: LockView, waitUntilMs: number): boolean {
  return waitUntilMs > 0 && view.timeMs > waitUntilMs;
}

export function tooLate(): Refused {
  return refused('LOCK_TIMEOUT', 'the wait for the lock has timed out');
}

/** A mark whose end has passed has no effect, whether it was cleared or not. */
export function liveMark(view: LockView, { mark }: OwnerRecord): Mark | undefined {
  return mark !== undefined && mark.deadlineMs >= view.timeMs ? mark : undefined;
}

/** M1, M2. Whether the acquire may have been sent before the cancel or release that left the mark. */
export function isMarked(view: LockView, record: OwnerRecord, command: CommandOf<'acquire'>): boolean {
  const mark = liveMark(view, record);
  if (mark === undefined) return false;
  const attempt = command.attempt ?? 0;
  if (attempt > 0 && mark.attempt > 0) return attempt <= mark.attempt;
  return command.deadlineMs <= mark.deadlineMs;
}

/** Leaves a mark, if an acquire may still be applied, for a session that could still be granted the lock (M3). */
export function leaveMark(
  { view, rows }: Procedure,
  { owner, deadlineMs }: Pick<CommandOf<'release'>, 'owner' | 'deadlineMs'>,
  attempt: number,
): void {
  if (deadlineMs === 0 || deadlineMs < view.timeMs || !view.sessionAlive(owner.session)) return;
  rows.mark(owner, { attempt, deadlineMs });
}

/** M1. Whether a release, cancel or downgrade by the holder is meant for an earlier grant. */
export function isOfEarlierGrant({ attempt = 0 }: { readonly attempt?: number }, hold: Hold): boolean {
  return attempt > 0 && attempt < hold.firstAttempt;
}

/** Cancels the waiting upgrade of this holder if its number is at most `attempt` (0: any), and answers it. */
export function stopWaiting(procedure: Procedure, { holder: { owner } }: Hold, attempt: number): void {
  const { rows } = procedure;
  const upgrader = rows.upgrader();
  if (upgrader === undefined || !sameOwner(upgrader.owner, owner)) return;
  if (attempt > 0 && upgrader.attempt > attempt) return;
  rows.removeUpgrader();
  notify(procedure, owner, refused('LOCK_CANCELED', 'the upgrade was canceled'));
}

/** B6. The refusal for an owner that waits to pass or to enter; undefined for other owners. */
export function refusalOfBarrierWaiter(rows: LockRows, owner: Owner): Refused | undefined {
  if (rows.head.passing === 0 || rows.barrierWaiters.get(owner)?.passedVersion !== 0) return undefined;
  return refused(
    'LOCK_KIND_MISMATCH',
    'the owner waits at a barrier; it cannot do anything else with the lock until that wait has ended',
  );
}
