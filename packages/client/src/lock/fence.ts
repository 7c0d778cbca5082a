import { binaryString, ServiceError } from '@remora/base';
import { DEFAULT_NAMESPACE } from '@remora/lock';
import { type BytesLike, toBytes } from '../kv/keys.ts';
import { COUNT_MAX, count, requireFunction } from '../options/option-kinds.ts';
import { checkOptions, optionSet, shown } from '../options/options.ts';
import { LOCK_OPTIONS, NAMESPACE_CHECKS, type NamespaceOptions } from './lock-name.ts';
import type { VersionCheck } from './locks.ts';

/** Asks the cluster, for each lock, whether this version holds it now. */
export type CheckVersions = (checks: readonly VersionCheck[]) => Promise<readonly boolean[]>;

export interface FenceGuardOptions extends NamespaceOptions {
  /**
   * For how many locks the guard remembers the highest version. It asks the cluster about the others. Default 100,000.
   */
  readonly namesMax?: number | undefined;
}

export const GUARD_OPTIONS = optionSet<FenceGuardOptions>('guard', {
  ...{ ...NAMESPACE_CHECKS, namesMax: count(1, COUNT_MAX) },
});

const NAMES_MAX = 100_000;

/** Checks fencing versions on the side of what a lock protects: a storage, a device, another service. */
export class Fence {
  readonly #check: CheckVersions;

  constructor(check: CheckVersions) {
    this.#check = check;
  }

  /**
   * Returns whether `version` holds the lock, at a moment between the call and its answer. That is a diagnosis and not
   * a fence: the holder may change before the next step. `guard` closes that gap.
   *
   * @throws ServiceError UNAVAILABLE, DEADLINE_EXCEEDED or RESOURCE_EXHAUSTED when the cluster did not answer;
   *   INVALID_ARGUMENT.
   */
  async check(name: BytesLike, version: number, options: NamespaceOptions = {}): Promise<boolean> {
    checkOptions(LOCK_OPTIONS, options);
    const [current] = await this.#check([{ name, version, ...options }]);
    return current === true;
  }

  /**
   * A guard that remembers the highest version it has admitted. Use one for each resource: it must see all writes to
   * it.
   */
  guard(options: FenceGuardOptions = {}): FenceGuard {
    return new FenceGuard(this.#check, options);
  }
}

/** The writes that were admitted under one lock. */
interface Seen {
  /** 0: nothing yet. */
  highest: number;
  /** Settles when the last write has ended; the next one waits for it. */
  last: Promise<unknown>;
  /** Calls in progress. */
  pins: number;
}

/**
 * Admits writes by their fencing versions.
 *
 * F1. A write is refused if its version is below one that was admitted before under that lock: once a newer holder has
 *     written, a process that was frozen while it held the lock cannot write any more.
 * F2. Writes under one lock run one after the other, in the order in which they were admitted: an older one that is in
 *     progress cannot end after a newer one.
 * F3. For a lock that it does not remember (after a restart, or after too many other locks) the guard asks the cluster,
 *     and admits only the version that holds the lock. So it needs no disk.
 * F4. The guard forgets no lock with a call in progress: the answer of the cluster is about the past, and a newer
 *     version may have been admitted since.
 */
export class FenceGuard {
  readonly #check: CheckVersions;
  readonly #namespace: string;
  readonly #namesMax: number;
  /** The least recently used first. */
  readonly #seen = new Map<string, Seen>();

  constructor(check: CheckVersions, options: FenceGuardOptions) {
    this.#check = check;
    checkOptions(GUARD_OPTIONS, options);
    this.#namespace = options.namespace ?? DEFAULT_NAMESPACE;
    this.#namesMax = options.namesMax ?? NAMES_MAX;
  }

  /**
   * Runs `write` unless `version` is stale, and returns its result.
   *
   * @throws ServiceError FENCED when the version is stale: `write` was not run, and no write with that version ever
   *   will be; UNAVAILABLE, DEADLINE_EXCEEDED or RESOURCE_EXHAUSTED when the guard had to ask the cluster and got no
   *   answer. An error of `write` is thrown as it is.
   */
  async run<Result>(name: BytesLike, version: number, write: () => Result | Promise<Result>): Promise<Result> {
    if (!Number.isSafeInteger(version) || version < 1) {
      throw new ServiceError(
        'INVALID_ARGUMENT',
        `version: expected a whole number above 0, such as \`lock.version\`, got ${shown(version)}`,
      );
    }
    requireFunction(write, 'write');
    const key = keyOf(name);
    const seen = this.#pin(key);
    try {
      if (seen.highest === 0) await this.#requireCurrent(name, version);
      // F1, checked after the await: others may have been admitted meanwhile.
      if (version < seen.highest) throw fenced(version, seen.highest);
      seen.highest = version;
      const running = seen.last.then(() => write());
      seen.last = running.catch(() => {});
      return await running;
    } finally {
      this.#unpin(key, seen);
    }
  }

  /** The highest version that was admitted under a lock; undefined if the guard remembers none. */
  highest(name: BytesLike): number | undefined {
    const highest = this.#seen.get(keyOf(name))?.highest;
    return highest === 0 ? undefined : highest;
  }

  async #requireCurrent(name: BytesLike, version: number): Promise<void> {
    const [current] = await this.#check([{ name, version, namespace: this.#namespace }]);
    if (current !== true) throw fenced(version, undefined);
  }

  #pin(key: string): Seen {
    const seen = this.#seen.get(key) ?? { highest: 0, last: Promise.resolve(), pins: 0 };
    seen.pins++;
    this.#seen.delete(key);
    this.#seen.set(key, seen);
    return seen;
  }

  /** F4. A lock under which nothing was admitted is not remembered. */
  #unpin(key: string, seen: Seen): void {
    seen.pins--;
    if (seen.pins === 0 && seen.highest === 0) this.#seen.delete(key);
    for (const [oldest, { pins }] of this.#seen) {
      if (this.#seen.size <= this.#namesMax) return;
      if (pins === 0) this.#seen.delete(oldest);
    }
  }
}

function keyOf(name: BytesLike): string {
  return binaryString(toBytes(name));
}

function fenced(version: number, highest: number | undefined): ServiceError {
  const why = highest === undefined ? 'it does not hold the lock now' : `version ${highest} has written already`;
  return new ServiceError('FENCED', `the fencing version ${version} is stale: ${why}`, {
    details: highest === undefined ? { version } : { version, highest },
  });
}
