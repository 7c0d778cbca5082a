/**
 * The locks that a task holds: a task is what a `run` does, with everything that it begins.
 *
 * TL1. Only `run` makes a task. The context of an `acquire` would also be that of whatever its caller begins after it,
 *      so two of these would be taken for one.
 * TL2. A task that holds a lock and asks for it again never waits for itself. If the lock is reentrant it enters again,
 *      otherwise it is refused (LOCK_SELF_WAIT).
 * TL3. A hold counts as long as it lasts: a task that outlives its `run` waits like any other.
 */
import { equalBytes, ServiceError } from '@remora/base';
import type { AcquireAs, LockId } from '@remora/lock';
import type { TaskContext } from '../ports.ts';
import type { Requester } from '../transport/requester.ts';
import { lockText } from './acquire-errors.ts';
import type { HeldLock } from './held-lock.ts';

/** What a task holds, and the task that it is a part of. */
interface TaskHolds {
  readonly requester: Requester;
  readonly locks: readonly HeldLock[];
  readonly outer: TaskHolds | undefined;
}

/** Runs the work as a task that holds these locks. */
export function asTask<Result>(requester: Requester, locks: readonly HeldLock[], work: () => Result): Result {
  const context: TaskContext | undefined = requester.ports.task;
  if (context === undefined) return work();
  return context.run({ requester, locks, outer: context.holds() as TaskHolds | undefined }, work);
}

/** How a task asks for a lock. */
export interface TaskRequest {
  readonly lock: LockId;
  readonly as: AcquireAs | undefined;
  readonly token: string | undefined;
  readonly waits: boolean;
  readonly reentrant: boolean;
}

/**
 * TL2. The present task's hold, which is to be entered again; undefined if it does not wait for itself.
 *
 * @throws ServiceError LOCK_SELF_WAIT
 */
export function ownHold(requester: Requester, request: TaskRequest): HeldLock | undefined {
  const { lock, as, token, waits, reentrant } = request;
  // Permits and parties of the same task add up, so it does not wait for itself.
  if (as !== undefined && as.type !== 'shared' && as.type !== 'pass') return undefined;
  const held = heldByTask(requester, lock);
  if (held === undefined || held.mode === 'permits' || held.token === token) return undefined;
  const isEnough = held.mode === 'exclusive' || as?.type === 'shared';
  if (reentrant && isEnough && as?.type !== 'pass') return held;
  // Two readers share the lock; without waiting, LOCK_BUSY says it.
  if (!waits || (held.mode === 'shared' && as?.type === 'shared')) return undefined;
  throw selfWait(held, as);
}

/** TL3. */
function heldByTask(requester: Requester, { namespace, name }: LockId): HeldLock | undefined {
  const context = requester.ports.task;
  let holds = context?.holds() as TaskHolds | undefined;
  for (; holds !== undefined; holds = holds.outer) {
    if (holds.requester !== requester) continue;
    const held = holds.locks.find(({ id }) => id.namespace === namespace && equalBytes(id.name, name));
    if (held !== undefined && (held.state === 'active' || held.state === 'suspended')) return held;
  }
  return undefined;
}

function selfWait(held: HeldLock, as: AcquireAs | undefined): ServiceError {
  const what = lockText(held.id);
  const advice =
    held.mode === 'shared'
      ? 'it holds it shared: call `upgrade` of the handle'
      : as?.type === 'pass'
        ? 'release it first'
        : 'use the handle that it has, or make the lock reentrant: lock(name, { reentrant: true })';
  const message = `this task would wait for itself: it already holds ${what} by an outer \`run\`; ${advice}`;
  return new ServiceError('LOCK_SELF_WAIT', message, { details: { version: held.version } });
}
