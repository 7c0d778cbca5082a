import { binaryString, ServiceError } from '@remora/base';
import { DEFAULT_NAMESPACE } from '@remora/lock';
import { type BytesLike, toBytes } from '../kv/keys.ts';
import { COUNT_MAX, count, requireFunction } from '../options/option-kinds.ts';
import { checkOptions, optionSet, shown } from '../options/options.ts';
import { LOCK_OPTIONS, NAMESPACE_CHECKS, type NamespaceOptions } from './lock-name.ts';
import type { VersionCheck } from './locks.ts';

/** Asks the cluster, for each lock, whether this version is its current one. */
export type CheckVersions = (checks: readonly VersionCheck[]) => Promise<readonly boolean[]>;

export interface FenceGuardOptions extends NamespaceOptions {
  /** How many locks' versions are kept in memory; default 100,000. Of others the cluster is asked again. */
  readonly namesMax?: number | undefined;
}

export const GUARD_OPTIONS = optionSet<FenceGuardOptions>('guard', {
  ...{ ...NAMESPACE_CHECKS, namesMax: count(1, COUNT_MAX) },
});

const NAMES_MAX = 100_000;

/** For those who serve what a lock protects: storage, a device, another service. */
export class Fence {
  readonly #check: CheckVersions;

  constructor(check: CheckVersions) {
    this.#check = check;
  }

  /**
   * Whether `version` is the lock's current grant, at a moment between call and answer. By itself it is a diagnosis, not a
   * fence: the holder may change before what is done next. `guard` closes that gap.
   *
   * @throws ServiceError when the cluster does not answer.
   */
  async check(name: BytesLike, version: number, options: NamespaceOptions = {}): Promise<boolean> {
    checkOptions(LOCK_OPTIONS, options);
    const [current] = await this.#check([{ name, version, ...options }]);
    return current === true;
  }

  /** A guard that remembers the highest version that it has let in. One per resource: it must see all writes to it. */
  guard(options: FenceGuardOptions = {}): FenceGuard {
    return new FenceGuard(this.#check, options);
  }
}

/** What was let in under one lock. */
interface Seen {
  /** 0: nothing yet. */
  highest: number;
  /** The end of the last that was begun: the next one waits for it. */
  last: Promise<unknown>;
  /** Calls under way. */
  pins: number;
}

/**
 * Lets writes in by their fencing versions.
 *
 * F1. Nothing is let in with a version below one that was let in before under that lock: after a newer holder has written,
 *     a process that was frozen while it held the lock cannot.
 * F2. Writes under one lock run one after the other, in the order in which they were let in: an older one that is under way
 *     does not end behind a newer one.
 * F3. What it does not remember (after a restart, or as too many locks were seen since) it asks the cluster, and lets in
 *     only the current version. So it needs no disk.
 * F4. Of a lock with a call under way nothing is forgotten: what the cluster has said of a version is true of the past, and
 *     a newer one may have been let in since.
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
   * Runs `write` if `version` is not stale, and gives what it gives.
   *
   * @throws ServiceError FENCED when the version is stale: nothing was run, and nothing ever will be with that version.
   *   Others when the cluster had to be asked and did not answer. What `write` throws is thrown on.
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
      // F1, after the wait: others may have come while the cluster was asked.
      if (version < seen.highest) throw fenced(version, seen.highest);
      seen.highest = version;
      const running = seen.last.then(() => write());
      seen.last = running.catch(() => {});
      return await running;
    } finally {
      this.#unpin(key, seen);
    }
  }

  /** The highest version that was let in under a lock; undefined when it remembers none. */
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

  /** F4. What was asked about and refused is not worth a place. */
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
