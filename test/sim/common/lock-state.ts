/** Checks that the state that a lock shows is possible: every view of a lock shows one consistent moment. */
import type { LockState } from '@remora/lock';

/** Describes each inconsistency. */
export function inconsistencies({ kind, holders, waiters, permits, capacity }: LockState): readonly string[] {
  const found: string[] = [];
  const modes = new Set(holders.map(({ mode }) => mode));
  if (modes.size > 1 || (modes.has('exclusive') && holders.length > 1)) {
    found.push(`it is held by ${holders.map(({ mode }) => mode).join()}`);
  }
  if (waiters.filter(({ mode }) => mode === 'upgrade').length > 1) found.push('it has two upgrades');
  const sum = holders.reduce((total, holder) => total + holder.permits, 0);
  if (sum !== permits || (kind === 'semaphore') !== capacity > 0) {
    found.push(`it is a ${kind} of ${capacity} with ${permits} permits held, in sum ${sum}`);
  }
  return found;
}
