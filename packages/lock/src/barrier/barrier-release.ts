/** Who waits at a lock passes: B1–B3 of `procedures.ts`. */
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

/** Lets all pass who can now. Costs nothing while nobody waits, or none of those who wait can. */
export function letThrough(procedure: Procedure): void {
  const { view, rows } = procedure;
  const { passing, parties } = rows.head;
  if (passing === 0 || (rows.held && (parties === 0 || partiesHere(rows) < parties))) return;
  const here = rows.passers.waiting().filter((passer) => !isGone(procedure, passer));
  const still: number[] = [];
  for (const passer of here) {
    const { owner } = passer;
    if (passer.parties === 0 && !rows.held) {
      rows.passers.put({ ...passer, passedVersion: view.revision });
      tellBarrierWaiter(procedure, passer, passed(view.revision));
    } else if (passer.parties > 0 && partiesHere(rows) >= passer.parties) {
      const hold = rows.holdOf(owner);
      assert(hold !== undefined, 'B2: who enters has its share while it waits');
      rows.passers.remove(owner);
      tellBarrierWaiter(procedure, passer, granted(procedure, hold.holder));
    } else if (passer.parties > 0) still.push(passer.parties);
  }
  rows.passers.setParties(still.length === 0 ? 0 : Math.min(...still));
}

/** B2, B3. How many share the lock and are alive: who is delayed (T1) keeps others off, and is nobody to wait for. */
export function partiesHere({ head: { sharers, delayed } }: LockRows): number {
  return sharers - delayed;
}

/** It holds nothing by that: the depth is 0. */
export function passed(version: number): LockResult {
  return { type: 'granted', version, depth: 0, lockTimeMs: 0 };
}

/** Who waits here is in no queue, so nobody who listens hears of it as of one who leaves a queue. */
export function tellBarrierWaiter(
  { lock, notices }: Procedure,
  { owner }: Pick<BarrierWaiter, 'owner'>,
  result: LockResult,
): void {
  notices.push({ lock, owner, result });
}

/** B3. The room that they leave may be others' who queue: the caller hands over. */
export function takeOutGone(procedure: Procedure): void {
  for (const passer of procedure.rows.passers.waiting()) isGone(procedure, passer);
}

/** B3. Takes out one that waits no longer, with its share. */
function isGone(procedure: Procedure, passer: BarrierWaiter): boolean {
  const { view, rows } = procedure;
  const { owner, waitUntilMs, parties } = passer;
  const alive = view.sessionAlive(owner.session);
  if (alive && !waitIsOver(view, waitUntilMs)) return false;
  rows.passers.remove(owner);
  const hold = parties > 0 ? rows.holdOf(owner) : undefined;
  if (hold !== undefined) {
    stopWaiting(procedure, hold, 0);
    rows.vacate(hold, alive ? 'released' : 'expired');
  }
  tellBarrierWaiter(procedure, passer, alive ? tooLate() : refused('SESSION_EXPIRED', SESSION_MESSAGE));
  return true;
}
