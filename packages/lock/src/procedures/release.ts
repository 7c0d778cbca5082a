/** Commands that end a grant or a wait: the rules are in `procedures.ts`. */

import { tellBarrierWaiter } from '../barrier/barrier-release.ts';
import { sameOwner } from '../identity.ts';
import type { Hold } from '../records/records.ts';
import type { WaiterRecord } from '../records/row-records.ts';
import type { LockResult, Owner } from '../types.ts';
import { handOver } from './hand-over.ts';
import {
  type CommandOf,
  isOfEarlierGrant,
  leaveMark,
  liveMark,
  notify,
  type Procedure,
  refused,
  SESSION_MESSAGE,
  stopWaiting,
} from './procedure.ts';
import { endUpgrade } from './upgrade.ts';

export function release(procedure: Procedure, command: CommandOf<'release'>): LockResult {
  const { rows } = procedure;
  const { owner, all, attempt = 0 } = command;
  const hold = rows.holdOf(owner);
  if (hold === undefined || isOfEarlierGrant(command, hold)) return releaseOfNothing(procedure, command, hold);
  const { version, depth } = hold.holder;
  if (!all && depth > 1) {
    rows.setHold(oneLevelLess(hold));
    return { type: 'released', depth: depth - 1, version };
  }
  end(procedure, hold);
  leaveMark(procedure, command, Math.max(attempt, hold.attempt));
  handOver(procedure);
  return { type: 'released', depth: 0, version };
}

/**
 * A release by an owner without a hold. The mark keeps the answer true: an acquire in flight cannot make it a holder
 * later.
 */
function releaseOfNothing(procedure: Procedure, command: CommandOf<'release'>, later: Hold | undefined): LockResult {
  const { view, rows } = procedure;
  const { owner, attempt = 0 } = command;
  if (!view.sessionAlive(owner.session)) return refused('SESSION_EXPIRED', SESSION_MESSAGE);
  const waiter = rows.barrierWaiters.get(owner);
  if (rows.owner(owner).sequence !== 0 || waiter?.passedVersion === 0) {
    return refused('LOCK_NOT_HELD', 'the owner waits for the lock and does not hold it; cancel the acquire instead');
  }
  leaveMark(procedure, command, attempt);
  if (waiter !== undefined && attempt > 0 && attempt < waiter.attempt) {
    return refused('LOCK_NOT_HELD', 'the grant to release has ended; the owner has passed since'); // M1
  }
  if (waiter !== undefined) {
    rows.barrierWaiters.remove(owner);
    return { type: 'released', depth: 0, version: waiter.passedVersion }; // B4
  }
  if (later !== undefined) {
    const { version } = later.holder;
    return refused(
      'LOCK_NOT_HELD',
      `the grant to release has ended; the owner holds a later one, of version ${version}`,
    );
  }
  const holder = rows.anyHold()?.holder;
  if (holder === undefined) return refused('LOCK_NOT_HELD', 'nobody holds the lock');
  return refused('LOCK_WRONG_OWNER', `another owner holds the lock, by version ${holder.version}`);
}

export function cancel(procedure: Procedure, command: CommandOf<'cancel'>): LockResult {
  const { view, rows } = procedure;
  const { owner, attempt = 0 } = command;
  const record = rows.owner(owner);
  if (attempt > 0 && attempt <= (liveMark(view, record)?.attempt ?? 0)) {
    return { type: 'canceled', released: false }; // It was ended before, and must not undo another level.
  }
  if (record.sequence !== 0 && covers(attempt, rows.waiter(record.sequence))) {
    rows.removeWaiter(owner, record);
    notify(procedure, owner, refused('LOCK_CANCELED', 'the acquire was canceled'));
  }
  const hold = rows.holdOf(owner);
  const undone = cancelPassing(procedure, command, hold) || (hold !== undefined && undo(procedure, command, hold));
  const ended = undone && rows.holdOf(owner) === undefined;
  leaveMark(procedure, command, hold !== undefined && ended ? Math.max(attempt, hold.attempt) : attempt);
  handOver(procedure);
  return { type: 'canceled', released: undone };
}

/** B5. Ends a wait at a barrier. Returns whether the owner gave up a share. */
function cancelPassing(procedure: Procedure, command: CommandOf<'cancel'>, hold: Hold | undefined): boolean {
  const { rows } = procedure;
  const { owner, attempt = 0 } = command;
  const waiter = rows.barrierWaiters.get(owner);
  if (waiter === undefined || (attempt > 0 && attempt < waiter.attempt)) return false;
  const entering = hold !== undefined && waiter.parties > 0;
  if (entering) end(procedure, hold);
  else {
    rows.barrierWaiters.remove(owner);
    if (waiter.passedVersion === 0)
      tellBarrierWaiter(procedure, { owner }, refused('LOCK_CANCELED', 'the acquire was canceled'));
  }
  return entering;
}

/** Undoes what the cancel names: an upgrade, or one level. Returns whether it undid anything. */
function undo(procedure: Procedure, command: CommandOf<'cancel'>, hold: Hold): boolean {
  const { rows } = procedure;
  const { attempt = 0 } = command;
  const upgrader = rows.upgrader();
  const waits = upgrader !== undefined && sameOwner(upgrader.owner, command.owner) && covers(attempt, upgrader);
  if (waits || (attempt > 0 && attempt === hold.upgradeAttempt)) {
    endUpgrade(procedure, hold, waits ? upgrader.attempt : attempt);
    return hold.mode === 'exclusive';
  }
  if (attempt > hold.attempt || isOfEarlierGrant(command, hold)) return false;
  if (attempt > 0 && attempt < hold.upgradeAttempt) return false; // Meant for an earlier upgrade, which was given up (U4).
  if (hold.holder.depth > 1) rows.setHold(oneLevelLess(hold));
  else end(procedure, hold);
  return true;
}

export function forceRelease(procedure: Procedure, command: CommandOf<'forceRelease'>): LockResult {
  const { view, rows } = procedure;
  const { by = '', reason = '', upToVersion = 0 } = command;
  const all = rows.head.hold === undefined ? rows.shares(0) : [rows.head.hold];
  const holds = upToVersion === 0 ? all : all.filter(({ holder }) => holder.version <= upToVersion);
  const isTaken = (owner: Owner): boolean => holds.some(({ holder }) => sameOwner(holder.owner, owner));
  const newest = holds.at(-1);
  if (newest === undefined) return refused('LOCK_NOT_HELD', notTaken(all, upToVersion));
  const upgrader = rows.upgrader();
  if (upgrader !== undefined && isTaken(upgrader.owner)) {
    rows.removeUpgrader();
    notify(procedure, upgrader.owner, refused('LOCK_NOT_HELD', 'the lock was taken away'));
  }
  for (const waiter of rows.head.parties > 0 ? rows.barrierWaiters.waiting() : []) {
    if (waiter.parties === 0 || !isTaken(waiter.owner)) continue;
    rows.barrierWaiters.remove(waiter.owner);
    tellBarrierWaiter(procedure, waiter, refused('LOCK_NOT_HELD', 'the lock was taken away'));
  }
  for (const hold of holds) {
    const { owner, version } = hold.holder;
    notify(procedure, owner, { type: 'released', depth: 0, version });
    rows.vacate(hold, 'forced');
  }
  const { version } = newest.holder;
  if (by !== '' || reason !== '') rows.recordForced({ atMs: view.wallMs, by, reason, version }); // F1
  handOver(procedure);
  return { type: 'released', depth: 0, version };
}

function notTaken(holds: readonly Hold[], upToVersion: number): string {
  if (holds.length === 0) return 'nobody holds the lock';
  return `the lock was granted again since version ${upToVersion}: nothing was taken`;
}

/** Ends a hold by its owner, with the upgrade or the wait at a barrier that depends on it. */
export function end(procedure: Procedure, hold: Hold): void {
  const { owner } = hold.holder;
  stopWaiting(procedure, hold, 0);
  const { rows } = procedure;
  if (rows.head.parties > 0 && (rows.barrierWaiters.get(owner)?.parties ?? 0) > 0) {
    rows.barrierWaiters.remove(owner);
    tellBarrierWaiter(procedure, { owner }, refused('LOCK_CANCELED', 'the owner has left'));
  }
  rows.vacate(hold, 'released');
}

/** Whether a cancel of `attempt` (0: any) means this waiter, and not a later acquire of its owner. */
function covers(attempt: number, waiter: WaiterRecord): boolean {
  return attempt === 0 || waiter.attempt <= attempt;
}

function oneLevelLess(hold: Hold): Hold {
  return { ...hold, holder: { ...hold.holder, depth: hold.holder.depth - 1 } };
}
