/** Waiting at a lock as a barrier, without queueing for it: B1–B6 of `procedures.ts`. */

import { assert } from '@remora/base';
import { BARRIER_WAITERS_MAX, SHARERS_MAX } from '../limits.ts';
import { handOver } from '../procedures/hand-over.ts';
import {
  type CommandOf,
  granted,
  isOfEarlierGrant,
  leaveMark,
  type Procedure,
  refused,
  tooLate,
  waitIsOver,
} from '../procedures/procedure.ts';
import { end } from '../procedures/release.ts';
import { publicHolder } from '../public-owner.ts';
import type { LockRows } from '../records/lock-rows.ts';
import type { Hold } from '../records/records.ts';
import type { LockResult } from '../types.ts';
import { evictExpired, partiesHere, passed, releaseBarrierWaiters } from './barrier-release.ts';

type Acquire = CommandOf<'acquire'>;

/** B4. The answer to an owner that asks again and has passed, whatever has happened to the lock since. */
export function passedBefore(rows: LockRows, { owner, as, attempt = 0 }: Acquire): LockResult | undefined {
  if (as?.type !== 'pass') return undefined;
  const before = rows.barrierWaiters.get(owner);
  if (before === undefined || before.passedVersion === 0 || attempt > before.attempt) return undefined;
  return passed(before.passedVersion);
}

/** B1. */
export function pass(procedure: Procedure, command: Acquire, hold: Hold | undefined): LockResult {
  const { view, rows } = procedure;
  const { owner, attempt = 0, waitUntilMs, wait } = command;
  const before = rows.barrierWaiters.get(owner);
  if (hold !== undefined && isOfEarlierGrant(command, hold)) {
    return refused('LOCK_CANCELED', 'the owner has entered again since');
  }
  const most = hold === undefined ? BARRIER_WAITERS_MAX : SHARERS_MAX;
  if (before === undefined && rows.head.passing + rows.head.passed >= most) {
    return refused(
      'RESOURCE_EXHAUSTED',
      `${most} owners wait to pass, or have not confirmed that they passed; the lock takes no more`,
    );
  }
  let free = !rows.held;
  if (hold !== undefined) {
    end(procedure, hold);
    // An acquire by which it entered may still be in flight (M1).
    if (attempt > 1) leaveMark(procedure, command, attempt - 1);
    free = !rows.held; // The next waiter in the queue comes after the owners that pass (B1), of which this is one.
    handOver(procedure);
  }
  if (wait && waitIsOver(view, waitUntilMs)) {
    rows.barrierWaiters.remove(owner);
    return tooLate();
  }
  const other = free ? undefined : rows.anyHold()?.holder;
  if (other !== undefined && !wait) return { type: 'busy', holder: publicHolder(other) };
  const passedVersion = other === undefined ? view.revision : 0;
  rows.barrierWaiters.put({ owner, attempt, waitUntilMs, parties: 0, passedVersion });
  return passedVersion > 0 ? passed(passedVersion) : { type: 'queued', position: rows.head.passing };
}

/** B2. */
export function enter(procedure: Procedure, command: Acquire, parties: number): LockResult {
  const { view, rows } = procedure;
  const { owner, attempt = 0, wait, data } = command;
  if (!wait && partiesHere(rows) + 1 >= parties) {
    evictExpired(procedure); // Otherwise it would be admitted by a count that includes them, and then have to wait (B3).
    handOver(procedure);
  }
  const hold = rows.holdOf(owner);
  const waitUntilMs = wait ? command.waitUntilMs : 0;
  const before = rows.barrierWaiters.get(owner);
  if (hold !== undefined && (before?.parties ?? 0) === 0) {
    if (attempt <= hold.attempt) return granted(procedure, hold.holder); // A repeated acquire (M1).
    return refused('LOCK_KIND_MISMATCH', 'the owner holds the lock already; leave before entering again');
  }
  if (before !== undefined && attempt < before.attempt) {
    return refused('LOCK_CANCELED', 'the owner has left, or entered again, since');
  }
  const entered = partiesHere(rows) + (hold === undefined ? 1 : 0);
  if (wait ? waitIsOver(view, waitUntilMs) : entered < parties) {
    if (hold !== undefined) end(procedure, hold);
    else rows.barrierWaiters.remove(owner);
    handOver(procedure);
    return wait ? tooLate() : refused('LOCK_TIMEOUT', `only ${entered} of ${parties} parties have entered`);
  }
  if (hold === undefined) {
    const wanted = { owner, mode: 'shared', permits: 0, attempt, data, keepData: false, delayMs: 0 } as const;
    if (rows.head.waiters > 0 || rows.head.upgrading || !rows.fits(wanted)) {
      return refused('LOCK_KIND_MISMATCH', 'the name is in use as a lock; use another name for the double barrier');
    }
    rows.grant(wanted);
  } else if (attempt > hold.attempt) rows.setHold({ ...hold, attempt });
  rows.barrierWaiters.put({ owner, attempt, waitUntilMs, parties, passedVersion: 0 });
  releaseBarrierWaiters(procedure);
  const inside = rows.holdOf(owner);
  assert(inside !== undefined, 'B2: an owner that enters has its share');
  if (rows.barrierWaiters.get(owner) === undefined) return granted(procedure, inside.holder);
  assert(wait, 'B2: an acquire that does not wait was granted or refused');
  return { type: 'queued', position: rows.head.passing };
}
