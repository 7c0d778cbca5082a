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
import { type ChecksOf, checkOptions, optionSet } from '../options/options.ts';
import type { Requester } from '../transport/requester.ts';
import { bytesOfCursor, cursorOf, Listing } from '../values/listing.ts';
import { printable } from '../values/printable.ts';
import { lockResult } from './acquire.ts';
import { detailsOf, type LockDetails } from './lock-details.ts';
import { eventsOfLocks, type LockEvents, type LockEventsOptions, type LocksWatchEvent } from './lock-events.ts';
import { type LockName, lockId, lockIdOf, NAMESPACE_CHECKS, type NamespaceOptions } from './lock-name.ts';
import { REVOKE_OPTIONS, type RevocationOutcome, type RevokeOptions, revokeLock } from './revoke.ts';

export interface ForceReleaseOptions extends NamespaceOptions {
  /**
   * Who takes the lock by force, at most 128 bytes. If `by` or `reason` is given, both stay on record with the lock
   * (`show`) until it is taken by force again, or until `forget`.
   */
  readonly by?: string | undefined;
  /** Why, at most 1 KiB. */
  readonly reason?: string | undefined;
  /**
   * Takes the lock only from grants up to this version, so from nobody who was granted it after you looked. Default:
   * from all holders.
   */
  readonly upToVersion?: number | undefined;
}

export const FORCED_CHECKS: ChecksOf<Pick<ForceReleaseOptions, 'by' | 'reason'>> = { by: text, reason: text };
export const FORCE_RELEASE_OPTIONS = optionSet<ForceReleaseOptions>('forceRelease', {
  ...{ ...NAMESPACE_CHECKS, ...FORCED_CHECKS, upToVersion: count(1, Number.MAX_SAFE_INTEGER) },
});

export interface LockListOptions extends NamespaceOptions {
  /** Only locks whose names begin with this. Default: all of the namespace. */
  readonly prefix?: BytesLike | undefined;
  /** How many locks one page has at most, 1 to 1,000. Default 100. */
  readonly pageSize?: number | undefined;
}

export const LOCK_LIST_OPTIONS = optionSet<LockListOptions>('list of locks', {
  ...{ ...NAMESPACE_CHECKS, prefix: bytes, pageSize: count(1, LIST_LIMIT_MAX) },
});

export interface LocksEventsOptions extends LockEventsOptions, NamespaceOptions {
  /** Only locks whose names begin with this. Default: all of the namespace. */
  readonly prefix?: BytesLike | undefined;
}

export const LOCKS_EVENTS_OPTIONS = optionSet<LocksEventsOptions>('events of locks', {
  ...{ ...NAMESPACE_CHECKS, prefix: bytes, signal },
});

/** A lock, and the fencing version of a grant. */
export interface VersionCheck extends LockName {
  readonly version: number;
}

export const VERSION_CHECK = optionSet<VersionCheck>('a check of a lock', {
  ...{ name: bytes, ...NAMESPACE_CHECKS, version: fencing },
});

const LIST_PAGE = 100;

/** Inspects locks of any client, asks their holders to release them, and takes them by force. */
export class Locks {
  readonly #requester: Requester;
  readonly #timeoutMs: number;

  constructor(requester: Requester, timeoutMs: number) {
    this.#requester = requester;
    this.#timeoutMs = timeoutMs;
  }

  /**
   * Returns the holders, the waiters and the kept data of the lock: at most 1,000 holders and 1,000 waiters.
   * Returns undefined when there is nothing to show.
   */
  async show(name: BytesLike, options: NamespaceOptions = {}): Promise<LockState | undefined> {
    const lock = lockIdOf(name, options);
    const result = await this.#query({ type: 'show', lock, allKinds: true });
    if (result.type !== 'show') throw unexpected(result.type);
    return printable(result.state);
  }

  /**
   * As `show`, and for each of the first 16 holders how long it would still hold the lock without a further heartbeat.
   */
  async details(name: BytesLike, options: NamespaceOptions = {}): Promise<LockDetails | undefined> {
    const state = await this.show(name, options);
    return state && detailsOf(this.#requester, state, this.#timeoutMs);
  }

  /**
   * All locks in the order of their names, each with its first 10 holders and 10 waiters. A free lock is in the list if
   * something was left with it: data, a capacity, or the record of a forced release.
   */
  list(options: LockListOptions = {}): Listing<LockState> {
    checkOptions(LOCK_LIST_OPTIONS, options);
    const { namespace = DEFAULT_NAMESPACE, pageSize: limit = LIST_PAGE } = options;
    const prefix = toBytes(options.prefix ?? EMPTY_BYTES);
    return new Listing(async (cursor) => {
      const after = cursor === undefined ? EMPTY_BYTES : bytesOfCursor(cursor);
      const result = await this.#query({ type: 'list', namespace, prefix, after, limit, allKinds: true });
      if (result.type !== 'list') throw unexpected(result.type);
      const last = result.locks.at(-1);
      return { items: printable(result.locks), cursor: result.more && last ? cursorOf(last.lock.name) : undefined };
    });
  }

  /** Returns, for each of up to 1,000 checks, whether `version` holds that lock now. */
  async check(checks: readonly VersionCheck[]): Promise<readonly boolean[]> {
    const result = await this.#query({
      type: 'check',
      checks: requireList(checks, 'checks').map(checkOf),
    });
    if (result.type !== 'check') throw unexpected(result.type);
    return result.current;
  }

  /**
   * The states of the locks whose names begin with a prefix, and then their changes, as an async iterator: see
   * `LockEvents`. A lock that is free has no state. `LockStates` keeps the states up to date from these events.
   */
  events(options: LocksEventsOptions = {}): LockEvents<LocksWatchEvent> {
    checkOptions(LOCKS_EVENTS_OPTIONS, options);
    const { namespace, prefix = EMPTY_BYTES } = options;
    return eventsOfLocks(this.#requester, lockIdOf(prefix, { namespace }), options);
  }

  /** Asks all holders of the lock, or of permits, to release it: see `Lock.revoke`. */
  async revoke(name: BytesLike, options: RevokeOptions & NamespaceOptions = {}): Promise<RevocationOutcome> {
    checkOptions(REVOKE_OPTIONS, options);
    const { namespace, ...rest } = options;
    return revokeLock(this.#requester, lockIdOf(name, { namespace }), { ...rest, timeoutMs: this.#timeoutMs });
  }

  /**
   * Takes the lock from all its holders, without asking them. They hear of it by their `signal`, which may be after the
   * next grant: until then only the fencing version protects against what they still do.
   *
   * @throws ServiceError LOCK_NOT_HELD when nobody holds the lock, or only by later grants than `upToVersion`;
   *   UNAVAILABLE, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED or UNKNOWN_OUTCOME when the cluster did not answer.
   */
  async forceRelease(name: BytesLike, options: ForceReleaseOptions = {}): Promise<void> {
    checkOptions(FORCE_RELEASE_OPTIONS, options);
    const { by = '', reason = '', upToVersion = 0, namespace } = options;
    await this.#command({ type: 'forceRelease', lock: lockIdOf(name, { namespace }), by, reason, upToVersion });
  }

  /**
   * Deletes the kept data of the lock (`keepData`) and the record of a forced release. Returns whether there was
   * either.
   */
  async forget(name: BytesLike, options: NamespaceOptions = {}): Promise<boolean> {
    const result = await this.#command({ type: 'forget', lock: lockIdOf(name, options) });
    if (result.type !== 'forgotten') throw unexpected(result.type);
    return result.any;
  }

  /** @throws ServiceError when the lock refuses the command. */
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
