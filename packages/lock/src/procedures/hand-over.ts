/** Grants a lock that has room to its next waiters: L2, L3 and L6 of `procedures.ts`. */
import { assert } from '@remora/base';
import { releaseBarrierWaiters } from '../barrier/barrier-release.ts';
import type { WaiterRecord } from '../records/row-records.ts';
import {
  granted,
  notify,
  type Procedure,
  type Refused,
  refused,
  SESSION_MESSAGE,
  tooLate,
  waitIsOver,
} from './procedure.ts';

/**
 * Grants the lock to the first waiters, while there is room for the first of them, and removes those that cannot be
 * granted it any more. No waiter overtakes another: if the first does not fit, the others wait behind it.
 */
export function handOver(procedure: Procedure): void {
  const { rows } = procedure;
  releaseBarrierWaiters(procedure);
  if (rows.full) return; // No waiter needs to be read.
  handOverToUpgrader(procedure);
  if (rows.head.upgrading || rows.full) return;
  handOverToQueue(procedure);
  releaseEnteringWaiters(procedure);
}

/** B2. Every new share counts as a party, whatever it was asked for: releases the waiters that have waited for it. */
export function releaseEnteringWaiters(procedure: Procedure): void {
  if (procedure.rows.head.parties > 0) releaseBarrierWaiters(procedure);
}

function handOverToQueue(procedure: Procedure): void {
  const { rows } = procedure;
  for (const waiter of rows.front()) {
    const { owner } = waiter;
    const refusal = refusalOf(procedure, waiter);
    if (refusal === undefined && !rows.fits(waiter)) return;
    rows.removeFirst(waiter);
    notify(procedure, owner, refusal ?? granted(procedure, rows.grant(waiter, waiter.sinceMs).holder));
    if (rows.full) return;
  }
}

/** U2. The waiting upgrade comes before the queue, once its owner is the only one that shares the lock. */
function handOverToUpgrader(procedure: Procedure): void {
  const { rows } = procedure;
  const upgrader = rows.upgrader();
  if (upgrader === undefined) return;
  const refusal = refusalOf(procedure, upgrader);
  if (refusal === undefined && rows.head.sharers > 1) return;
  rows.removeUpgrader();
  if (refusal !== undefined) return notify(procedure, upgrader.owner, refusal);
  const hold = rows.holdOf(upgrader.owner);
  assert(hold !== undefined, 'W2: an upgrade has a share');
  const { attempt: upgradeAttempt, sinceMs } = upgrader;
  const alone = rows.convert(hold, { mode: 'exclusive', upgradeAttempt, sinceMs });
  notify(procedure, upgrader.owner, granted(procedure, alone.holder));
}

/**
 * L6. After the capacity was lowered: removes and answers the waiters that want more permits than the capacity,
 *     wherever they are in the queue. The caller hands over after that.
 */
export function refuseTooLarge(procedure: Procedure): void {
  const { rows } = procedure;
  for (const waiter of rows.queued()) {
    const { owner, permits } = waiter;
    const refusal = permits > rows.head.capacity ? refusalOf(procedure, waiter) : undefined;
    if (refusal === undefined) continue;
    rows.removeWaiter(owner, rows.owner(owner));
    notify(procedure, owner, refusal);
  }
}

/** L3, L6. Why a waiter can no longer be granted the lock; undefined if it can. */
function refusalOf({ view, rows }: Procedure, { owner, waitUntilMs, permits }: WaiterRecord): Refused | undefined {
  if (!view.sessionAlive(owner.session)) return refused('SESSION_EXPIRED', SESSION_MESSAGE);
  if (waitIsOver(view, waitUntilMs)) return tooLate();
  return permits > rows.head.capacity ? tooManyPermits(permits, rows.head.capacity) : undefined;
}

export function tooManyPermits(permits: number, capacity: number): Refused {
  return refused('LOCK_PERMITS_EXCEEDED', `the semaphore has ${capacity} permits in all; ${permits} were asked for`);
}
