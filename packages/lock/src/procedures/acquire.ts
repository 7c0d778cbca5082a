/** Acquires: the rules are in `procedures.ts`. */

import { assert } from '@remora/base';
import { enter as enterBarrier, pass, passedBefore } from '../barrier/barrier.ts';
import { WAITERS_MAX } from '../limits.ts';
import { publicHolder } from '../public-owner.ts';
import type { LockRows } from '../records/lock-rows.ts';
import type { Hold } from '../records/records.ts';
import type { OwnerRecord, WaiterRecord } from '../records/row-records.ts';
import type { LockResult } from '../types.ts';
import { handOver, releaseEnteringWaiters, tooManyPermits } from './hand-over.ts';
import type { GrantRequest } from './lock-holds.ts';
import {
  type CommandOf,
  granted,
  isMarked,
  leaves,
  type Procedure,
  type Refused,
  refusalOfBarrierWaiter,
  refused,
  SESSION_MESSAGE,
  tooLate,
  waitIsOver,
} from './procedure.ts';
import { upgrade } from './upgrade.ts';

type Acquire = CommandOf<'acquire'>;

export function acquire(procedure: Procedure, command: Acquire): LockResult {
  const { view, rows } = procedure;
  const { owner } = command;
  if (!view.sessionAlive(owner.session)) return refused('SESSION_EXPIRED', SESSION_MESSAGE);
  const record = rows.owner(owner);
  if (isMarked(view, record, command)) {
    return refused('LOCK_CANCELED', 'this acquire was canceled, or its lock released, before it arrived');
  }
  const passage = passedBefore(rows, command);
  if (passage !== undefined) return passage;
  const mismatch = kindMismatch(rows, command);
  if (mismatch !== undefined) return mismatch;
  const waiting = forgetPassage(rows, command);
  if (waiting !== undefined) return waiting;
  const hold = rows.holdOf(owner);
  if (command.as?.type === 'upgrade') return upgrade(procedure, command, hold);
  if (command.as?.type === 'pass') return pass(procedure, command, hold);
  if (command.as?.type === 'enter') return enterBarrier(procedure, command, command.as.parties);
  if (hold !== undefined) return reenter(procedure, hold, command);
  if (command.wait && waitIsOver(view, command.waitUntilMs)) {
    if (record.sequence !== 0) leaveQueue(procedure, command, record, 'LOCK_TIMEOUT');
    return tooLate();
  }
  return enter(procedure, command, record);
}

/** The acquire of an owner that does not hold the lock. */
function enter(procedure: Procedure, command: Acquire, record: OwnerRecord): LockResult {
  const { view, rows } = procedure;
  const { owner, data, waitUntilMs, attempt = 0, keepData = false, delayMs = 0 } = command;
  const { mode, permits } = wantedOf(command);
  const wanted: GrantRequest = { owner, mode, permits, attempt, data, keepData, delayMs };
  const inQueue = record.sequence !== 0;
  if (command.as?.type === 'permits') {
    const capacity = rows.head.capacity || command.as.capacity;
    if (wanted.permits > capacity) {
      if (inQueue) leaveQueue(procedure, command, record, 'LOCK_PERMITS_EXCEEDED');
      return tooManyPermits(wanted.permits, capacity);
    }
    if (rows.head.capacity === 0) rows.setCapacity(capacity, false);
  }
  if (inQueue && stayInQueue(rows, record, command)) return stay(procedure, command, record);
  if (inQueue) leaveQueue(procedure, command, record, 'LOCK_CANCELED');
  else if (someoneWaits(rows)) handOver(procedure); // Removes waiters whose wait is over (L2).
  if (!someoneWaits(rows) && rows.fits(wanted)) {
    const { holder } = rows.grant(wanted);
    releaseEnteringWaiters(procedure);
    return granted(procedure, holder);
  }
  if (!command.wait) return busy(rows);
  if (rows.head.waiters >= WAITERS_MAX) {
    return refused('RESOURCE_EXHAUSTED', `the lock has ${WAITERS_MAX} waiters, and takes no more`);
  }
  // Field by field, as elsewhere on this path: spreading objects costs a fifth of a hand-over here.
  const sinceMs = view.wallMs;
  const waiter: WaiterRecord = { owner, mode, permits, attempt, waitUntilMs, sinceMs, data, keepData, delayMs };
  rows.enqueue(waiter, inQueue ? rows.owner(owner) : record);
  return { type: 'queued', position: rows.head.waiters + (rows.head.upgrading ? 1 : 0) };
}

/** Answers an owner that keeps its place. It may be next by now, as the waits before it are over (L2). */
function stay(procedure: Procedure, command: Acquire, { sequence }: OwnerRecord): LockResult {
  const { rows } = procedure;
  const { owner, wait } = command;
  if (!rows.full) {
    handOver(procedure);
    const hold = rows.holdOf(owner);
    if (hold !== undefined) return granted(procedure, hold.holder);
    if (rows.owner(owner).sequence === 0) return tooLate();
  }
  return wait ? { type: 'queued', position: rows.position(sequence) } : busy(rows);
}

function someoneWaits({ head }: LockRows): boolean {
  return head.waiters > 0 || head.upgrading;
}

type Wanted = Pick<GrantRequest, 'mode' | 'permits'>;

const ALONE: Wanted = { mode: 'exclusive', permits: 0 };
const SHARED: Wanted = { mode: 'shared', permits: 0 };

function wantedOf({ as }: Acquire): Wanted {
  if (as?.type === 'permits') return { mode: 'permits', permits: as.permits };
  return as?.type === 'shared' ? SHARED : ALONE;
}

/** L5. */
function kindMismatch({ head, held }: LockRows, { as }: Acquire): Refused | undefined {
  if (as?.type === 'permits') {
    if (head.capacity > 0 || !held) return undefined;
    return refused('LOCK_KIND_MISMATCH', 'the name is in use as a lock, not as a semaphore');
  }
  if (head.capacity === 0) return undefined;
  return refused(
    'LOCK_KIND_MISMATCH',
    `the name is in use as a semaphore with ${head.capacity} permits, not as a lock`,
  );
}

/**
 * B4, B6. An owner that acquires knows that it has passed, so the row can go. One that still waits to pass is refused.
 */
function forgetPassage(rows: LockRows, { owner, as }: Acquire): Refused | undefined {
  if (as?.type === 'pass' || as?.type === 'enter') return undefined;
  if (rows.head.passing + rows.head.passed === 0) return undefined;
  const refusal = refusalOfBarrierWaiter(rows, owner);
  if (refusal === undefined) rows.barrierWaiters.remove(owner);
  return refusal;
}

function reenter(procedure: Procedure, hold: Hold, command: Acquire): LockResult {
  const { depthMax, attempt = 0 } = command;
  const { holder } = hold;
  if (attempt > 0 && attempt <= hold.attempt) return granted(procedure, holder); // Asked again (M1).
  if (hold.mode === 'shared' && command.as === undefined) {
    return refused('LOCK_KIND_MISMATCH', 'the owner holds the lock shared; upgrade it to hold it alone');
  }
  if (holder.depth >= depthMax) {
    return refused('LOCK_DEPTH_EXCEEDED', `the owner has entered ${holder.depth} levels, and may enter ${depthMax}`);
  }
  const deeper = { ...holder, depth: holder.depth + 1 };
  procedure.rows.setHold({ ...hold, holder: deeper, attempt: Math.max(attempt, hold.attempt) });
  return granted(procedure, deeper);
}

/**
 * The owner is in the queue already: it keeps its place, and waits as long as the latest acquire says. Returns false if
 * the acquire asks for something else, for which it has no place.
 */
function stayInQueue(rows: LockRows, record: OwnerRecord, command: Acquire): boolean {
  const { wait, waitUntilMs, attempt = 0, data, keepData = false, delayMs = 0 } = command;
  const waiter = rows.waiter(record.sequence);
  const newer = attempt > waiter.attempt;
  const { mode, permits } = wantedOf(command);
  if (newer && (mode !== waiter.mode || permits !== waiter.permits)) return false;
  if (wait && (newer || (attempt === waiter.attempt && waitUntilMs !== waiter.waitUntilMs))) {
    const said = newer ? { data, keepData, delayMs } : {};
    rows.replaceWaiter(record.sequence, { ...waiter, ...said, attempt, waitUntilMs });
  }
  return true;
}

/** Removes the owner from the queue, and hands over: a waiter behind it may be next. */
function leaveQueue(procedure: Procedure, { owner }: Acquire, record: OwnerRecord, why: Refused['code']): void {
  procedure.rows.removeWaiter(owner, record);
  leaves(procedure, owner, why);
  handOver(procedure);
}

function busy(rows: LockRows): LockResult {
  const hold = rows.anyHold();
  assert(hold !== undefined, 'W2: a lock without room has a holder');
  return { type: 'busy', holder: publicHolder(hold.holder) };
}
