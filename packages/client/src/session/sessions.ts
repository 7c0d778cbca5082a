import { ServiceError } from '@remora/base';
import type { SessionLock } from '@remora/lock';
import { SESSIONS_LIMIT_MAX, type SessionInfo } from '@remora/protocol';
import { attributes, count, leaseOrNone, requireLease, revision } from '../options/option-kinds.ts';
import { checkOptions, optionSet, shown } from '../options/options.ts';
import type { Requester } from '../transport/requester.ts';

export interface SessionDetails extends SessionInfo {
  /** What it holds, and what it waits for; `more` when there are more than can be told. */
  readonly locks: readonly SessionLock[];
  readonly more: boolean;
}

export interface SessionListOptions {
  readonly after?: bigint | undefined;
  readonly limit?: number | undefined;
  readonly attributes?: Readonly<Record<string, string>> | undefined;
}

export const SESSION_LIST_OPTIONS = optionSet<SessionListOptions>('list of sessions', {
  ...{ after: leaseOrNone, limit: count(1, SESSIONS_LIMIT_MAX), attributes },
});

export interface SessionCloseOptions {
  readonly incarnation?: number | undefined;
}

export const SESSION_CLOSE_OPTIONS = optionSet<SessionCloseOptions>('close of a session', { incarnation: revision });

/** Looking at sessions, whoever's they are, and ending them. */
export class Sessions {
  readonly #requester: Requester;
  readonly #timeoutMs: number;

  constructor(requester: Requester, timeoutMs: number) {
    this.#requester = requester;
    this.#timeoutMs = timeoutMs;
  }

  /**
   * A page of them: at most `limit` (100, at most 1,000) behind `after`, of those that have each of the `attributes`,
   * beginning as is said. Go on with `next` as `after` until there is none; a page may be short, or empty, before.
   */
  async list(
    options: SessionListOptions = {},
  ): Promise<{ readonly sessions: readonly SessionInfo[]; readonly next: bigint | undefined }> {
    checkOptions(SESSION_LIST_OPTIONS, options);
    const { after = 0n, limit = 100, attributes = {} } = options;
    const query = { type: 'sessions', after, limit, attributes } as const;
    const { result } = await this.#requester.query(query, { timeoutMs: this.#timeoutMs });
    if (result.type !== 'sessions') throw unexpected(result.type);
    return { sessions: result.sessions, next: result.next === 0n ? undefined : result.next };
  }

  /** By its id, or as `remora session ls` prints that. Undefined when there is no such session. */
  async show(id: bigint | string): Promise<SessionDetails | undefined> {
    const query = { type: 'session', id: idOf(id), incarnation: 0 } as const;
    const { result } = await this.#requester.query(query, { timeoutMs: this.#timeoutMs });
    if (result.type !== 'session') throw unexpected(result.type);
    const { session, locks, more } = result;
    return session === undefined ? undefined : { ...session, locks, more };
  }

  /**
   * Ends a session, whoever's it is: all that it holds is released and its keys are deleted. Its client is not asked; only
   * the fencing version protects against what it still does.
   *
   * @throws ServiceError LEASE_NOT_FOUND when there is no such session, or not this `incarnation` of it.
   */
  async close(id: bigint | string, options: SessionCloseOptions = {}): Promise<void> {
    checkOptions(SESSION_CLOSE_OPTIONS, options);
    const { incarnation = 0 } = options;
    await this.#requester.command({ type: 'leaseRevoke', id: idOf(id), incarnation }, { timeoutMs: this.#timeoutMs });
  }
}

/** As people are shown ids: 64 bits without a sign, though etcd's clients may have chosen one below 0. */
const HEX = /^[0-9a-f]{1,16}$/i;

function idOf(id: bigint | string): bigint {
  if (typeof id === 'bigint') return requireLease(id, 'session');
  if (typeof id === 'string' && HEX.test(id)) return idOf(BigInt.asIntN(64, BigInt(`0x${id}`)));
  throw new ServiceError(
    'INVALID_ARGUMENT',
    `the id of a session: expected a bigint, or hexadecimal text as printed by 'remora session ls', got ${shown(id)}`,
  );
}

function unexpected(type: string): ServiceError {
  return new ServiceError('INTERNAL', `a question about sessions was answered by a result of another kind: ${type}`);
}
