/** Conversions from shared to exclusive and back: U1–U4 of `procedures.ts`. */

import { sameOwner } from '../identity.ts';
import { publicHolder } from '../public-owner.ts';
import type { Hold } from '../records/records.ts';
import type { LockResult } from '../types.ts';
import { handOver } from './hand-over.ts';
import {
  type CommandOf,
  granted,
  isOfEarlierGrant,
  leaves,
  type Procedure,
  refusalOfBarrierWaiter,
  refused,
  SESSION_MESSAGE,
  stopWaiting,
  tooLate,
  waitIsOver,
} from './procedure.ts';

/** The acquire of a sharer that wants to hold the lock exclusively. */
export function upgrade(procedure: Procedure, command: CommandOf<'acquire'>, hold: Hold | undefined): LockResult {
  const { view, rows } = procedure;
  const { owner, attempt = 0, wait, waitUntilMs } = command;
  if (hold === undefined) return refused('LOCK_NOT_HELD', 'only an owner that holds the lock shared can upgrade it');
  if (hold.mode === 'exclusive') return granted(procedure, hold.holder); // U4
  if (attempt <= hold.attempt) return refused('LOCK_CANCELED', 'this upgrade was canceled before it arrived');
  const upgrader = rows.upgrader();
  const mine = upgrader !== undefined && sameOwner(upgrader.owner, owner);
  if (wait && waitIsOver(view, waitUntilMs)) {
    if (mine) {
      rows.removeUpgrader();
      leaves(procedure, owner, 'LOCK_TIMEOUT');
      handOver(procedure);
    }
    return tooLate();
  }
  handOver(procedure); // An upgrade before this one may be over, or due.
  const still = rows.holdOf(owner);
  if (still === undefined) return refused('LOCK_NOT_HELD', 'the owner has lost the lock meanwhile'); // B3
  if (still.mode === 'exclusive') return granted(procedure, still.holder);
  if (rows.head.upgrading && !mine) {
    return refused(
      'LOCK_UPGRADE_CONFLICT',
      'another reader waits for its upgrade, and the two would wait for each other forever: one of them has to release',
    );
  }
  if (rows.head.sharers === 1) {
    const alone = rows.convert(still, { mode: 'exclusive', upgradeAttempt: attempt });
    return granted(procedure, alone.holder);
  }
  if (!wait) return { type: 'busy', holder: publicHolder((rows.anyHold(owner) ?? still).holder) };
  const { data } = still.holder;
  const sinceMs = mine ? upgrader.sinceMs : view.wallMs;
  rows.setUpgrader({
    owner,
    mode: 'upgrade',
    permits: 0,
    attempt,
    waitUntilMs,
    sinceMs,
    data,
    keepData: false,
    delayMs: 0,
  });
  return { type: 'queued', position: 1 };
}

export function downgrade(procedure: Procedure, command: CommandOf<'downgrade'>): LockResult {
  const { view, rows } = procedure;
  const { owner, attempt = 0 } = command;
  if (!view.sessionAlive(owner.session)) return refused('SESSION_EXPIRED', SESSION_MESSAGE);
  const hold = rows.holdOf(owner);
  if (hold === undefined || isOfEarlierGrant(command, hold)) {
    return refused('LOCK_NOT_HELD', 'only the holder of the lock can downgrade it');
  }
  if (hold.mode === 'permits')
    return refused('LOCK_KIND_MISMATCH', 'the name is in use as a semaphore, whose permits cannot be downgraded');
  const entering = refusalOfBarrierWaiter(rows, owner);
  if (entering !== undefined) return entering;
  if (attempt > 0 && attempt < hold.upgradeAttempt) return granted(procedure, hold.holder); // It comes late (U4).
  endUpgrade(procedure, hold, attempt);
  handOver(procedure);
  const still = rows.holdOf(owner);
  if (still === undefined) return refused('LOCK_NOT_HELD', 'the owner has lost the lock meanwhile'); // B3
  return granted(procedure, still.holder);
}

/** Makes the hold shared, and ends an upgrade that waits. `attempt`: the latest upgrade that this ends; 0: any. */
export function endUpgrade(procedure: Procedure, hold: Hold, attempt: number): Hold {
  const { rows } = procedure;
  const upgradeAttempt = Math.max(attempt, hold.upgradeAttempt);
  if (hold.mode === 'exclusive') return rows.convert(hold, { mode: 'shared', upgradeAttempt });
  stopWaiting(procedure, hold, attempt);
  const ended = { ...hold, attempt: Math.max(attempt, hold.attempt), upgradeAttempt };
  rows.setHold(ended);
  return ended;
}
