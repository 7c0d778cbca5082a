import { byOwner, name } from './gist.ts';
import type { NaiveState, Passing } from './naive-state.ts';

/** Who comes next, whatever has changed: those at the barrier, then who upgrades, then the queue. */
export function handOver(lock: NaiveState): void {
  releaseBarrierWaiters(lock);
  if (lock.full()) return;
  const { upgrader } = lock;
  if (upgrader !== undefined) {
    const refusal = lock.refusal({ ...upgrader, permits: 0 });
    if (refusal === undefined && lock.holders.length > 1) return;
    lock.upgrader = undefined;
    const held = lock.heldBy(upgrader.owner);
    if (refusal !== undefined) lock.notices.push(`${name(upgrader.owner)} ${refusal}`);
    else if (held !== undefined) {
      lock.toExclusive(held, upgrader.attempt);
      lock.notices.push(`${name(upgrader.owner)} ${lock.granted(held)}`);
      return;
    }
  }
  for (let next = lock.queue[0]; next !== undefined && !lock.full(); next = lock.queue[0]) {
    const refusal = lock.refusal(next);
    if (refusal === undefined && !lock.fits(next)) break;
    lock.queue.shift();
    if (refusal === undefined) lock.grant(next);
    const told = refusal ?? lock.granted({ version: lock.now.revision, depth: 1 });
    lock.notices.push(`${name(next.owner)} ${told}`);
  }
  releaseBarrierWaiters(lock);
}

/** Those at the barrier who may pass or enter. */
export function releaseBarrierWaiters(lock: NaiveState): void {
  const sharers = () => lock.holders.filter(({ mode, delayed }) => mode !== 'exclusive' && !delayed).length;
  const waiting = () => waitingAt(lock);
  const may = (p: Passing) => (p.parties === 0 ? lock.holders.length === 0 : sharers() >= p.parties);
  // Nobody is looked at unless somebody may pass, or the lock is free.
  if (!waiting().some(may)) return;
  evictExpired(lock);
  for (const waiter of waiting().filter(may)) {
    if (waiter.parties === 0) {
      waiter.passed = lock.now.revision;
      lock.notices.push(`${name(waiter.owner)} granted ${waiter.passed} 0`);
    } else {
      lock.dropBarrierWaiter(waiter.owner);
      const held = lock.heldBy(waiter.owner);
      if (held !== undefined) lock.notices.push(`${name(waiter.owner)} ${lock.granted(held)}`);
    }
  }
}

/** Of those at the barrier, who are dead, or have waited for long enough. */
export function evictExpired(lock: NaiveState): void {
  for (const waiter of waitingAt(lock)) {
    const alive = lock.now.alive(waiter.owner);
    const late = waiter.waitUntilMs > 0 && waiter.waitUntilMs < lock.now.timeMs;
    if (alive && !late) continue;
    lock.dropBarrierWaiter(waiter.owner);
    const held = waiter.parties > 0 ? lock.heldBy(waiter.owner) : undefined;
    if (held !== undefined) lock.remove(held);
    lock.notices.push(`${name(waiter.owner)} ${alive ? 'LOCK_TIMEOUT' : 'SESSION_EXPIRED'}`);
  }
}

function waitingAt(lock: NaiveState): Passing[] {
  return lock.barrierWaiters.filter(({ passed }) => passed === 0).sort(byOwner);
}
