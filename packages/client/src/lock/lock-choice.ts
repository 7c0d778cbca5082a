import { compareBytes, ServiceError, utf8 } from '@remora/base';
import type { AcquireAs, LockId } from '@remora/lock';
import type { BytesLike } from '../kv/keys.ts';
import { bytes, capacity, flag, object, permits } from '../options/option-kinds.ts';
import { checkOptions, optionSet, shown } from '../options/options.ts';
import { lockText } from './acquire-errors.ts';
import { Lock } from './lock.ts';
import { lockIdOf, NAMESPACE_CHECKS } from './lock-name.ts';

/** One of several locks to be held at once: a name or a lock to be had alone, one to be shared, or permits. */
export type LockChoice =
  | BytesLike
  | Lock
  | { readonly lock: BytesLike; readonly namespace?: string | undefined; readonly shared?: boolean }
  | {
      readonly semaphore: BytesLike;
      readonly namespace?: string | undefined;
      /** How many there are in all, as `permits` of `RemoraClient.semaphore`. */
      readonly capacity: number;
      /** How many of them; 1 unless given. */
      readonly permits?: number | undefined;
    };

type ChoiceOf<Name extends string> = Extract<LockChoice, { readonly [name in Name]: BytesLike }>;
export const LOCK_CHOICE = optionSet<ChoiceOf<'lock'>>('a lock of a set', {
  ...{ lock: bytes, ...NAMESPACE_CHECKS, shared: flag },
});
export const SEMAPHORE_CHOICE = optionSet<ChoiceOf<'semaphore'>>('a semaphore of a set', {
  ...{ semaphore: bytes, ...NAMESPACE_CHECKS, capacity, permits },
});

/** A lock, and what it is asked for; without `as` for its owner alone. */
export interface WantedLock {
  readonly id: LockId;
  readonly as?: AcquireAs;
}

/** What a lock is asked for, and where its handle belongs. */
export interface LockPlan {
  /** Each lock once, in the order in which all clients acquire. */
  readonly wanted: readonly WantedLock[];
  /** For each choice, the place of its lock in `wanted`. */
  readonly places: readonly number[];
}

/** As many as one question to the cluster can check. */
export const CHOICES_MAX = 1_000;

/**
 * The order of acquiring is that of (namespace, name), byte by byte, whatever the order of the choices. A lock that is
 * chosen more than once is acquired once, in the way that serves all: alone if any wants it alone, and with all permits.
 *
 * @throws ServiceError INVALID_ARGUMENT for no choice or too many, and for one name as a lock and a semaphore, or as
 *   semaphores of different capacities.
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
