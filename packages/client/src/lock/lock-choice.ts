import { compareBytes, ServiceError, utf8 } from '@remora/base';
import type { AcquireAs, LockId } from '@remora/lock';
import type { BytesLike } from '../kv/keys.ts';
import { bytes, capacity, flag, object, permits } from '../options/option-kinds.ts';
import { checkOptions, optionSet, shown } from '../options/options.ts';
import { lockText } from './acquire-errors.ts';
import { Lock } from './lock.ts';
import { lockIdOf, NAMESPACE_CHECKS } from './lock-name.ts';

/**
 * One of several locks to hold at once: a name or a `Lock`, held exclusively; a lock, optionally shared; or permits.
 */
export type LockChoice =
  | BytesLike
  | Lock
  | { readonly lock: BytesLike; readonly namespace?: string | undefined; readonly shared?: boolean }
  | {
      readonly semaphore: BytesLike;
      readonly namespace?: string | undefined;
      /** How many permits the semaphore has in all, as `permits` of `RemoraClient.semaphore`. */
      readonly capacity: number;
      /** How many of them to acquire. Default 1. */
      readonly permits?: number | undefined;
    };

type ChoiceOf<Name extends string> = Extract<LockChoice, { readonly [name in Name]: BytesLike }>;
export const LOCK_CHOICE = optionSet<ChoiceOf<'lock'>>('a lock of a set', {
  ...{ lock: bytes, ...NAMESPACE_CHECKS, shared: flag },
});
export const SEMAPHORE_CHOICE = optionSet<ChoiceOf<'semaphore'>>('a semaphore of a set', {
  ...{ semaphore: bytes, ...NAMESPACE_CHECKS, capacity, permits },
});

/** A lock and how to acquire it; without `as` exclusively. */
export interface WantedLock {
  readonly id: LockId;
  readonly as?: AcquireAs;
}

/** Which locks to acquire, in which order, and which choice each belongs to. */
export interface LockPlan {
  /** Each lock once, in the order in which all clients acquire. */
  readonly wanted: readonly WantedLock[];
  /** For each choice, the place of its lock in `wanted`. */
  readonly places: readonly number[];
}

/** As many as one request can check (LS3). */
export const CHOICES_MAX = 1_000;

/**
 * Orders the locks by (namespace, name), byte by byte, whatever the order of the choices. A lock that is chosen more
 * than once is acquired once, for all of them: exclusively if one of them wants that, and with the sum of the permits.
 *
 * @throws ServiceError INVALID_ARGUMENT for no choice or too many, for a name that is chosen as a lock and as a
 *   semaphore, and for different capacities of one semaphore.
 */
export function planLocks(choices: readonly LockChoice[]): LockPlan {
  if (!Array.isArray(choices)) {
    throw new ServiceError('INVALID_ARGUMENT', `lockAll: expected a list of locks, got ${shown(choices)}`);
  }
  if (choices.length === 0 || choices.length > CHOICES_MAX) {
    throw new ServiceError('INVALID_ARGUMENT', `lockAll: expected 1 to ${CHOICES_MAX} locks, got ${choices.length}`);
  }
  const sorted = choices
    .map((choice, at) => ({ at, lock: wantedOf(choice) }))
    .sort((a, b) => compareIds(a.lock.id, b.lock.id));
  const wanted: WantedLock[] = [];
  const places = new Array<number>(choices.length);
  for (const { at, lock } of sorted) {
    const last = wanted.at(-1);
    if (last !== undefined && compareIds(last.id, lock.id) === 0) wanted[wanted.length - 1] = both(last, lock);
    else wanted.push(lock);
    places[at] = wanted.length - 1;
  }
  return { wanted, places };
}

function wantedOf(choice: LockChoice): WantedLock {
  if (choice instanceof Lock) return { id: choice.id };
  if (typeof choice === 'string' || choice instanceof Uint8Array) return { id: lockIdOf(choice, {}) };
  object(choice, 'a lock, or a semaphore, of a set');
  const { namespace } = choice;
  if ('lock' in choice) {
    checkOptions(LOCK_CHOICE, choice);
    const id = lockIdOf(choice.lock, { namespace });
    return choice.shared ? { id, as: { type: 'shared' } } : { id };
  }
  checkOptions(SEMAPHORE_CHOICE, choice);
  const { semaphore, capacity: all, permits: wanted = 1 } = choice;
  return { id: lockIdOf(semaphore, { namespace }), as: { type: 'permits', permits: wanted, capacity: all } };
}

function both(a: WantedLock, b: WantedLock): WantedLock {
  if (a.as?.type === 'permits' && b.as?.type === 'permits' && a.as.capacity === b.as.capacity) {
    return { id: a.id, as: { ...a.as, permits: a.as.permits + b.as.permits } };
  }
  if (a.as?.type === 'permits' || b.as?.type === 'permits') {
    const message = `lockAll: ${lockText(a.id)} is chosen as a lock and as a semaphore, or with different capacities`;
    throw new ServiceError('INVALID_ARGUMENT', message, { details: { name: Buffer.from(a.id.name).toString() } });
  }
  return a.as === undefined ? a : b;
}

function compareIds(a: LockId, b: LockId): number {
  return compareBytes(utf8(a.namespace), utf8(b.namespace)) || compareBytes(a.name, b.name);
}
