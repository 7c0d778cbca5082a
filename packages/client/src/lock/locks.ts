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
import { type BytesLike, requireText, toBytes } from '../kv/keys.ts';
import { checkOptions } from '../options/known-options.ts';
import { fencing, requireList } from '../options/option-kinds.ts';
import { requireCount } from '../options/options.ts';
import { type RevocationOutcome, type RevokeOptions, revokeLock } from '../session/revoke.ts';
import type { Requester } from '../transport/requester.ts';
import { lockResult } from './acquire.ts';
import { detailsOf, type LockDetails } from './lock-details.ts';
import { eventsOfLocks, type LockEvents, type LockEventsOptions, type LocksWatchEvent } from './lock-events.ts';

export interface LockName {
  readonly name: BytesLike;
  readonly namespace?: string | undefined;
}

export interface ForceReleaseOptions {
  readonly namespace?: string | undefined;
  /**
   * Who does it, at most 128 bytes, and why, at most 1 KiB. If either is said it stays on record with the lock (`show`),
   * until it is taken by force again, or until `forget`.
   */
  readonly by?: string | undefined;
  readonly reason?: string | undefined;
}

/** Looking at locks, whoever holds them, and breaking them. */
export class Locks {
  readonly #requester: Requester;
  readonly #timeoutMs: number;

  constructor(requester: Requester, timeoutMs: number) {
    this.#requester = requester;
    this.#timeoutMs = timeoutMs;
  }

  /** Who holds the lock and who waits, and what was left with it; undefined when there is nothing to show. */
  async show(
    name: BytesLike,
    options: { readonly namespace?: string | undefined } = {},
  ): Promise<LockState | undefined> {
    const lock = lockIdOf(name, options);
    const result = await this.#query({ type: 'show', lock, allKinds: true });
    if (result.type !== 'show') throw unexpected(result.type);
    return result.state;
  }

  /** As `show`, with how long each of the first 16 holders would still have it if no more were heard of it. */
  async details(
    name: BytesLike,
    options: { readonly namespace?: string | undefined } = {},
  ): Promise<LockDetails | undefined> {
    const state = await this.show(name, options);
    return state && detailsOf(this.#requester, state, this.#timeoutMs);
  }

  /**
   * Locks in order of their names, at most 1,000 at once; go on with `after` while there are `more`. Also free ones with
   * which something was left: data, a set capacity, or who took them by force.
   */
  async list(
    options: {
      readonly namespace?: string | undefined;
      readonly prefix?: BytesLike | undefined;
      readonly after?: BytesLike | undefined;
      readonly limit?: number | undefined;
    } = {},
  ): Promise<{ readonly locks: readonly LockState[]; readonly more: boolean }> {
    checkOptions('list of locks', options);
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
  async check(checks: readonly (LockName & { readonly version: number })[]): Promise<readonly boolean[]> {
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
  events(
    options: LockEventsOptions & {
      readonly namespace?: string | undefined;
      readonly prefix?: BytesLike | undefined;
    } = {},
  ): LockEvents<LocksWatchEvent> {
    checkOptions('events of locks', options);
    const { namespace, prefix = EMPTY_BYTES } = options;
    return eventsOfLocks(this.#requester, lockIdOf(prefix, { namespace }), options);
  }

  /** Asks all who hold the lock, or permits, to let go: see `Lock.revoke`. */
  async revoke(
    name: BytesLike,
    options: RevokeOptions & { readonly namespace?: string | undefined } = {},
  ): Promise<RevocationOutcome> {
    checkOptions('revoke', options);
    const { namespace, ...rest } = options;
    return revokeLock(this.#requester, lockIdOf(name, { namespace }), { ...rest, timeoutMs: this.#timeoutMs });
  }

  /** Takes the lock from its holder, or from all who share it; nobody is asked. Only the fencing version protects against what it still does. */
  async forceRelease(name: BytesLike, options: ForceReleaseOptions = {}): Promise<void> {
    checkOptions('forceRelease', options);
    const { by = '', reason = '', namespace } = options;
    await this.#command({ type: 'forceRelease', lock: lockIdOf(name, { namespace }), by, reason });
  }

  /** Forgets what earlier holders left with the lock (`keepData`), and who took it by force. Gives whether there was anything. */
  async forget(name: BytesLike, options: { readonly namespace?: string | undefined } = {}): Promise<boolean> {
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

export function lockId({ name, namespace }: LockName): LockId {
  return lockIdOf(name, { namespace });
}

export function lockIdOf(name: BytesLike, options: { readonly namespace?: string | undefined }): LockId {
  checkOptions('lock', options);
  const { namespace = DEFAULT_NAMESPACE } = options;
  return { namespace: requireText(namespace, 'namespace'), name: toBytes(name) };
}

function checkOf(check: LockName & { readonly version: number }): { readonly lock: LockId; readonly version: number } {
  checkOptions('a check of a lock', check);
  fencing(check.version, 'version');
  return { lock: lockId(check), version: check.version };
}

function unexpected(type: string): ServiceError {
  return new ServiceError('INTERNAL', `a lock request was answered by a result of another kind: ${type}`);
}
