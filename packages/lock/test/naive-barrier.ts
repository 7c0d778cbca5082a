/** Barriers: those who wait until nobody holds the lock, and those who enter it together. */
import type { Owner } from '../src/index.ts';
import { type Gist, name, text } from './gist.ts';
import { evictExpired, handOver, releaseBarrierWaiters } from './naive-hand-over.ts';
import type { CommandOf, Holding, NaiveState } from './naive-state.ts';

export function pass(lock: NaiveState, command: CommandOf<'acquire'>, held: Holding | undefined): Gist {
  const { owner, attempt = 0, wait, waitUntilMs } = command;
  if (held !== undefined && attempt < held.first) return 'LOCK_CANCELED';
  if (held !== undefined) lock.vacate(held);
  const free = lock.holders.length === 0;
  if (held !== undefined) {
    if (attempt > 1) lock.leaveMark(command, attempt - 1);
    handOver(lock);
  }
  if (wait && waitUntilMs > 0 && waitUntilMs < lock.now.timeMs) {
    lock.dropBarrierWaiter(owner);
    return 'LOCK_TIMEOUT';
  }
  const passes = free || lock.holders.length === 0;
  if (!passes && !wait) return lock.busy();
  const passed = passes ? lock.now.revision : 0;
  lock.putBarrierWaiter({ owner, attempt, waitUntilMs, parties: 0, passed });
  return passed > 0 ? `granted ${passed} 0` : 'queued';
}

export function enterBarrier(lock: NaiveState, command: CommandOf<'acquire'>, parties: number): Gist {
  const { owner, attempt = 0, wait } = command;
  const waitUntilMs = wait ? command.waitUntilMs : 0;
  const here = () => lock.holders.filter(({ mode, delayed }) => mode === 'shared' && !delayed).length;
  if (!wait && here() + 1 >= parties) {
    evictExpired(lock);
    handOver(lock);
  }
  const held = lock.heldBy(owner);
  const before = lock.barrierWaiter(owner);
  if (held !== undefined && (before?.parties ?? 0) === 0) {
    return attempt <= held.attempt ? lock.granted(held) : 'LOCK_KIND_MISMATCH';
  }
  if (before !== undefined && attempt < before.attempt) return 'LOCK_CANCELED';
  const entered = here() + (held === undefined ? 1 : 0);
  if (wait ? waitUntilMs > 0 && waitUntilMs < lock.now.timeMs : entered < parties) {
    if (held !== undefined) lock.vacate(held);
    else lock.dropBarrierWaiter(owner);
    handOver(lock);
    return 'LOCK_TIMEOUT';
  }
  if (held === undefined) {
    const alone = lock.holders.some(({ mode }) => mode === 'exclusive');
    if (lock.queue.length > 0 || lock.upgrader !== undefined || alone) return 'LOCK_KIND_MISMATCH';
    const wanted = { data: text(command.data), keepData: false, delayMs: 0, permits: 0 };
    lock.grant({ owner, mode: 'shared', attempt, waitUntilMs, ...wanted });
  } else held.attempt = Math.max(attempt, held.attempt);
  lock.putBarrierWaiter({ owner, attempt, waitUntilMs, parties, passed: 0 });
  releaseBarrierWaiters(lock);
  const inside = lock.heldBy(owner);
  if (lock.barrierWaiter(owner) === undefined && inside !== undefined) return lock.granted(inside);
  return 'queued';
}

export function cancelPassing(lock: NaiveState, owner: Owner, attempt: number, held: Holding | undefined): boolean {
  const waiter = lock.barrierWaiter(owner);
  if (waiter === undefined || (attempt > 0 && attempt < waiter.attempt)) return false;
  if (held !== undefined && waiter.parties > 0) {
    lock.vacate(held);
    return true;
  }
  lock.dropBarrierWaiter(owner);
  if (waiter.passed === 0) lock.notices.push(`${name(owner)} LOCK_CANCELED`);
  return false;
}
