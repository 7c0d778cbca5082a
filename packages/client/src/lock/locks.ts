import { EMPTY_BYTES, ServiceError } from '@remora/base';
import {
  DEFAULT_NAMESPACE,
  LIST_LIMIT_MAX,
  type LockCommand,
  type LockId,
  type LockQuery,
  type LockQueryResult,
  type LockResult,
  type LockState,
} from '@remora/lock';
import { type BytesLike, toBytes } from '../kv/keys.ts';
import { bytes, count, fencing, requireList, signal, text } from '../options/option-kinds.ts';
import { type ChecksOf, checkOptions, optionSet, requireCount } from '../options/options.ts';
import type { Requester } from '../transport/requester.ts';
import { lockResult } from './acquire.ts';
import { detailsOf, type LockDetails } from './lock-details.ts';
import { eventsOfLocks, type LockEvents, type LockEventsOptions, type LocksWatchEvent } from './lock-events.ts';
import { type LockName, lockId, lockIdOf, NAMESPACE_CHECKS, type NamespaceOptions } from './lock-name.ts';
import { REVOKE_OPTIONS, type RevocationOutcome, type RevokeOptions, revokeLock } from './revoke.ts';

export interface ForceReleaseOptions extends NamespaceOptions {
  /**
   * Who does it, at most 128 bytes, and why, at most 1 KiB. If either is said it stays on record with the lock (`show`),
   * until it is taken by force again, or until `forget`.
   */
  readonly by?: string | undefined;
  readonly reason?: string | undefined;
}

export const FORCED_CHECKS: ChecksOf<Pick<ForceReleaseOptions, 'by' | 'reason'>> = { by: text, reason: text };
export const FORCE_RELEASE_OPTIONS = optionSet<ForceReleaseOptions>('forceRelease', {
  ...{ ...NAMESPACE_CHECKS, ...FORCED_CHECKS },
});

export interface LockListOptions extends NamespaceOptions {
  readonly prefix?: BytesLike | undefined;
  readonly after?: BytesLike | undefined;
  readonly limit?: number | undefined;
}

export const LOCK_LIST_OPTIONS = optionSet<LockListOptions>('list of locks', {
  ...{ ...NAMESPACE_CHECKS, prefix: bytes, after: bytes, limit: count(1, LIST_LIMIT_MAX) },
});

/** Of the locks whose names begin with `prefix`: of all of a namespace by default. */
export interface LocksEventsOptions extends LockEventsOptions, NamespaceOptions {
  readonly prefix?: BytesLike | undefined;
}

export const LOCKS_EVENTS_OPTIONS = optionSet<LocksEventsOptions>('events of locks', {
  ...{ ...NAMESPACE_CHECKS, prefix: bytes, signal },
});

/** A lock, and the version of the grant that is asked about. */
export interface VersionCheck extends LockName {
  readonly version: number;
}

export const VERSION_CHECK = optionSet<VersionCheck>('a check of a lock', {
  ...{ name: bytes, ...NAMESPACE_CHECKS, version: fencing },
});

/** Looking at locks, whoever holds them, and breaking them. */
export class Locks {
  readonly #requester: Requester;
  readonly #timeoutMs: number;

  constructor(requester: Requester, timeoutMs: number) {
    this.#requester = requester;
    this.#timeoutMs = timeoutMs;
  }

  /** Who holds the lock and who waits, and what was left with it; undefined when there is nothing to show. */
  async show(name: BytesLike, options: NamespaceOptions = {}): Promise<LockState | undefined> {
    const lock = lockIdOf(name, options);
    const result = await this.#query({ type: 'show', lock, allKinds: true });
    if (result.type !== 'show') throw unexpected(result.type);
    return result.state;
  }

  /** As `show`, with how long each of the first 16 holders would still have it if no more were heard of it. */
  async details(name: BytesLike, options: NamespaceOptions = {}): Promise<LockDetails | undefined> {
    const state = await this.show(name, options);
    return state && detailsOf(this.#requester, state, this.#timeoutMs);
  }

  /**
   * Locks in order of their names, at most 1,000 at once; go on with `after` while there are `more`. Also free ones with
   * which something was left: data, a set capacity, or who took them by force.
   */
  async list(options: LockListOptions = {}): Promise<{ readonly locks: readonly LockState[]; readonly more: boolean }> {
    checkOptions(LOCK_LIST_OPTIONS, options);
    const result = await this.#query({
      type: 'list',
      namespace: options.namespace ?? DEFAULT_NAMESPACE,
      prefix: toBytes(options.prefix ?? EMPTY_BYTES),
      after: toBytes(options.after ?? EMPTY_BYTES),
      limit: requireCount(options.limit ?? 100, 'limit', { min: 1, max: LIST_LIMIT_MAX }),
      allKinds: true,
    });
    if (result.type !== 'list') throw unexpected(result.type);
    return { locks: result.locks, more: result.more };
  }

  /** For each, whether `version` is still that lock's current grant. */
  async check(checks: readonly VersionCheck[]): Promise<readonly boolean[]> {
    const result = await this.#query({
      type: 'check',
      checks: requireList(checks, 'checks').map(checkOf),
    });
    if (result.type !== 'check') throw unexpected(result.type);
    return result.current;
  }

  /**
   * How the locks are whose names begin with a prefix, and what happens to them, as an async iterator: see `LockEvents`.
   * Of locks that are free nothing is told. `LockStates` makes states of it.
   */
  events(options: LocksEventsOptions = {}): LockEvents<LocksWatchEvent> {
    checkOptions(LOCKS_EVENTS_OPTIONS, options);
    const { namespace, prefix = EMPTY_BYTES } = options;
    return eventsOfLocks(this.#requester, lockIdOf(prefix, { namespace }), options);
  }

  /** Asks all who hold the lock, or permits, to let go: see `Lock.revoke`. */
  async revoke(name: BytesLike, options: RevokeOptions & NamespaceOptions = {}): Promise<RevocationOutcome> {
    checkOptions(REVOKE_OPTIONS, options);
    const { namespace, ...rest } = options;
    return revokeLock(this.#requester, lockIdOf(name, { namespace }), { ...rest, timeoutMs: this.#timeoutMs });
  }

  /** Takes the lock from its holder, or from all who share it; nobody is asked. Only the fencing version protects against what it still does. */
  async forceRelease(name: BytesLike, options: ForceReleaseOptions = {}): Promise<void> {
    checkOptions(FORCE_RELEASE_OPTIONS, options);
    const { by = '', reason = '', namespace } = options;
    await this.#command({ type: 'forceRelease', lock: lockIdOf(name, { namespace }), by, reason });
  }

  /** Forgets what earlier holders left with the lock (`keepData`), and who took it by force. Gives whether there was anything. */
  async forget(name: BytesLike, options: NamespaceOptions = {}): Promise<boolean> {
    const result = await this.#command({ type: 'forget', lock: lockIdOf(name, options) });
    if (result.type !== 'forgotten') throw unexpected(result.type);
    return result.any;
  }

  /** Throws what is refused. */
  async #command(command: LockCommand): Promise<LockResult> {
    const result = lockResult(await this.#requester.command({ type: 'lock', command }, { timeoutMs: this.#timeoutMs }));
    if (result.type === 'refused') throw new ServiceError(result.code, result.message);
    return result;
  }

  async #query(query: LockQuery): Promise<LockQueryResult> {
    const { result } = await this.#requester.query({ type: 'lock', query }, { timeoutMs: this.#timeoutMs });
    if (result.type !== 'lock') throw unexpected(result.type);
    return result.result;
  }
}

function checkOf(check: VersionCheck): { readonly lock: LockId; readonly version: number } {
  checkOptions(VERSION_CHECK, check);
  fencing(check.version, 'version');
  return { lock: lockId(check), version: check.version };
}

function unexpected(type: string): ServiceError {
  return new ServiceError('INTERNAL', `a lock request was answered by a result of another kind: ${type}`);
}
