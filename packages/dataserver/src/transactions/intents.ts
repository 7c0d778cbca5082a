import { type Bytes, binaryString, compareBytes, LazyMap } from '@remora/base';
import { type LockId, lockPrefix } from '@remora/lock';
import { isLockCompare, type KeyRange } from '@remora/protocol';
import { SpanIndex } from '../watch/span-index.ts';
import { isEmptyRange, type PreparedPart } from './prepared-part.ts';

/**
 * The intents that the prepared parts of a range hold.
 *
 * I1. A part holds shared intents on all keys and spans that it compares or reads, and exclusive ones on those that it
 *     may write, whichever of its branches is executed (design §11 ▸).
 * I2. A request may write only where no other transaction has an intent, and read only where no other transaction has
 *     an exclusive intent.
 * I3. A lock whose version a part compares is under a shared intent too: until the part is resolved, the lock does not
 *     change. So the part's writes happen while that grant holds the lock, and the next grant is later.
 */
interface Intent {
  readonly key: Bytes;
  readonly end: Bytes | undefined;
  readonly exclusive: boolean;
  readonly part: PreparedPart;
}

export class Intents {
  readonly #byPart = new LazyMap<PreparedPart, readonly Intent[]>();
  readonly #index = new SpanIndex<Intent>();
  /** I3. Keyed by `lockName`. */
  readonly #byLock = new LazyMap<string, Set<PreparedPart>>();
  #size = 0;

  /** The number of intents, not of parts. */
  get size(): number {
    return this.#size;
  }

  add(part: PreparedPart): void {
    const intents = intentsOf(part);
    this.#byPart.set(part, intents);
    for (const intent of intents) this.#index.add(intent);
    const locks = locksOf(part);
    for (const name of locks) this.#byLock.set(name, (this.#byLock.get(name) ?? new Set()).add(part));
    this.#size += intents.length + locks.size;
  }

  remove(part: PreparedPart): void {
    const intents = this.#byPart.get(part) ?? [];
    this.#byPart.delete(part);
    for (const intent of intents) this.#index.remove(intent);
    const locks = locksOf(part);
    for (const name of locks) this.#removeLock(name, part);
    this.#size -= intents.length + locks.size;
  }

  #removeLock(name: string, part: PreparedPart): void {
    const parts = this.#byLock.get(name);
    parts?.delete(part);
    if (parts?.size === 0) this.#byLock.delete(name);
  }

  /** Calls `fn` for each part that prevents others from writing there (I2), perhaps more than once. */
  againstWriting(range: KeyRange, fn: (part: PreparedPart) => void): void {
    this.#overlapping(range, ({ part }) => fn(part));
  }

  /**
   * Calls `fn` for each part that prevents others from reading the current state there (I2), perhaps more than once.
   */
  againstReading(range: KeyRange, fn: (part: PreparedPart) => void): void {
    this.#overlapping(range, ({ part, exclusive }) => {
      if (exclusive) fn(part);
    });
  }

  /** Calls `fn` for each part that needs the lock to stay as it is (I3). */
  againstChanging(lock: LockId, fn: (part: PreparedPart) => void): void {
    if (this.#byLock.size === 0) return;
    for (const part of this.#byLock.get(lockName(lock)) ?? []) fn(part);
  }

  #overlapping(range: KeyRange, fn: (intent: Intent) => void): void {
    if (isEmptyRange(range)) return;
    if (range.end === undefined) return this.#index.forEach(range.key, fn);
    for (const intents of this.#byPart.values()) {
      for (const intent of intents) if (overlap(range, intent)) fn(intent);
    }
  }
}

function intentsOf(part: PreparedPart): readonly Intent[] {
  const intents: Intent[] = [];
  const take = (range: KeyRange, exclusive: boolean): void => {
    if (!isEmptyRange(range)) intents.push({ key: range.key, end: range.end, exclusive, part });
  };
  for (const compare of part.compares) if (!isLockCompare(compare)) take(compare, false);
  for (const { op } of part.ops) take(op, op.type !== 'range');
  return intents;
}

function locksOf({ compares }: PreparedPart): ReadonlySet<string> {
  return new Set(compares.flatMap((compare) => (isLockCompare(compare) ? [lockName(compare.lock)] : [])));
}

/** A string that identifies the lock. */
export function lockName(lock: LockId): string {
  return binaryString(lockPrefix(lock));
}

/** Whether a part may write: its commit then has a revision. */
export function writes(part: PreparedPart): boolean {
  return part.ops.some(({ op }) => op.type !== 'range');
}

/** Both ranges must not be empty. */
export function overlap(a: { readonly key: Bytes; readonly end?: Bytes | undefined }, b: typeof a): boolean {
  return reaches(a, b.key) && reaches(b, a.key);
}

/** Whether a range ends behind a key. */
function reaches({ key, end }: { readonly key: Bytes; readonly end?: Bytes | undefined }, other: Bytes): boolean {
  if (end === undefined) return compareBytes(key, other) >= 0;
  return end.length === 0 || compareBytes(end, other) > 0;
}
