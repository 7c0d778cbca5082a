/** A shared hold that becomes exclusive, and back. */
import { type Gist, name, shownName } from './gist.ts';
import { handOver } from './naive-hand-over.ts';
import type { CommandOf, Holding, NaiveState } from './naive-state.ts';

export function upgrade(
  lock: NaiveState,
  { owner, attempt = 0, wait, waitUntilMs }: CommandOf<'acquire'>,
  held: Holding | undefined,
): Gist {
  if (held === undefined) return 'LOCK_NOT_HELD';
  if (held.mode === 'exclusive') return lock.granted(held);
  if (attempt <= held.attempt) return 'LOCK_CANCELED';
  const mine = lock.upgrader !== undefined && name(lock.upgrader.owner) === name(owner);
  if (wait && waitUntilMs > 0 && waitUntilMs < lock.now.timeMs) {
    if (mine) {
      lock.upgrader = undefined;
      handOver(lock);
    }
    return 'LOCK_TIMEOUT';
  }
  handOver(lock);
  if (!lock.holders.includes(held)) return 'LOCK_NOT_HELD';
  if (lock.upgrader !== undefined && !mine) return 'LOCK_UPGRADE_CONFLICT';
  if (lock.holders.length === 1) {
    lock.toExclusive(held, attempt);
    return lock.granted(held);
  }
  if (!wait) return `busy ${shownName(lock.holders.find((h) => h !== held)?.owner ?? owner)}`;
  lock.upgrader = { owner, attempt, waitUntilMs };
  return 'queued';
}

export function downgrade(lock: NaiveState, { owner, attempt = 0 }: CommandOf<'downgrade'>): Gist {
  if (!lock.now.alive(owner)) return 'SESSION_EXPIRED';
  const held = lock.heldBy(owner);
  if (held === undefined || (attempt > 0 && attempt < held.first)) return 'LOCK_NOT_HELD';
  if (held.mode === 'permits' || lock.barrierWaiter(owner)?.passed === 0) return 'LOCK_KIND_MISMATCH';
  if (attempt > 0 && attempt < held.upgrade) return lock.granted(held);
  endUpgrade(lock, held, attempt);
  handOver(lock);
  return lock.granted(held);
}

export function endUpgrade(lock: NaiveState, held: Holding, attempt: number): void {
  if (held.mode === 'exclusive') {
    held.mode = 'shared';
    lock.newVersion(held);
  } else lock.stopUpgrading(held.owner, attempt);
  held.attempt = Math.max(held.attempt, attempt, held.upgrade);
  held.upgrade = Math.max(held.upgrade, attempt);
}
