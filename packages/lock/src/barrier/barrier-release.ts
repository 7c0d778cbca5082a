/** Releases the waiters of barriers, and evicts those whose session or wait has ended: B1–B3 of `procedures.ts`. */
import { assert } from '@remora/base';
import {
  granted,
  type Procedure,
  refused,
  SESSION_MESSAGE,
  stopWaiting,
  tooLate,
  waitIsOver,
} from '../procedures/procedure.ts';
import type { LockRows } from '../records/lock-rows.ts';
import type { LockResult } from '../types.ts';
import type { BarrierWaiter } from './barrier-waiters.ts';

/**
 * B1, B2. Releases every waiter that need not wait any longer. Reads no row where nobody waits, or nobody can pass yet.
 */
export function releaseBarrierWaiters(procedure: Procedure): void {
  const { view, rows } = procedure;
  const { passing, parties: fewest } = rows.head;
  if (passing === 0 || (rows.held && (fewest === 0 || partiesHere(rows) < fewest))) return;
  const parties: number[] = [];
  for (const waiter of evictExpired(procedure)) {
    const { owner } = waiter;
    if (waiter.parties === 0 && !rows.held) {
      rows.barrierWaiters.put({ ...waiter, passedVersion: view.revision });
      tellBarrierWaiter(procedure, waiter, passed(view.revision));
    } else if (waiter.parties > 0 && partiesHere(rows) >= waiter.parties) {
      const hold = rows.holdOf(owner);
      assert(hold !== undefined, 'B2: a waiter that enters has its share');
      rows.barrierWaiters.remove(owner);
      tellBarrierWaiter(procedure, waiter, granted(procedure, hold.holder));
    } else if (waiter.parties > 0) parties.push(waiter.parties);
  }
  rows.barrierWaiters.setParties(parties.length === 0 ? 0 : Math.min(...parties));
}

/** B2, B3. How many parties share the lock. A delayed hold (T1) blocks others, but does not count as a party. */
export function partiesHere({ head: { sharers, delayed } }: LockRows): number {
  return sharers - delayed;
}

/** The answer to a waiter that has passed: it holds nothing, so its depth is 0. */
export function passed(version: number): LockResult {
  return { type: 'granted', version, depth: 0, lockTimeMs: 0 };
}

/** Answers the open call of a barrier's waiter. It is in no queue, so there is no event of one that leaves a queue. */
export function tellBarrierWaiter(
  { lock, notices }: Procedure,
  { owner }: Pick<BarrierWaiter, 'owner'>,
  result: LockResult,
): void {
  notices.push({ lock, owner, result });
}

/**
 * B3. Evicts the waiters whose session or wait has ended; returns the others, in the order of their owners. The shares
 *     of those evicted leave room: the caller hands over.
 */
export function evictExpired(procedure: Procedure): readonly BarrierWaiter[] {
  const waiting: BarrierWaiter[] = [];
  for (const waiter of procedure.rows.barrierWaiters.waiting()) {
    if (hasExpired(procedure, waiter)) evict(procedure, waiter);
    else waiting.push(waiter);
  }
  return waiting;
}

function hasExpired({ view }: Procedure, { owner, waitUntilMs }: BarrierWaiter): boolean {
  return !view.sessionAlive(owner.session) || waitIsOver(view, waitUntilMs);
}

/** Removes a waiter and its share, and answers it. */
function evict(procedure: Procedure, waiter: BarrierWaiter): void {
  const { view, rows } = procedure;
  const { owner, parties } = waiter;
  const alive = view.sessionAlive(owner.session);
  rows.barrierWaiters.remove(owner);
  const hold = parties > 0 ? rows.holdOf(owner) : undefined;
  if (hold !== undefined) {
    stopWaiting(procedure, hold, 0);
    rows.vacate(hold, alive ? 'released' : 'expired');
  }
  tellBarrierWaiter(procedure, waiter, alive ? tooLate() : refused('SESSION_EXPIRED', SESSION_MESSAGE));
}
