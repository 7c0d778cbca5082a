import { ServiceError } from '@remora/base';
import type { SessionLock } from '@remora/lock';
import { SESSIONS_LIMIT_MAX, type SessionInfo } from '@remora/protocol';
import { attributes, count, requireLease, revision, textOrNone } from '../options/option-kinds.ts';
import { checkOptions, optionSet, shown } from '../options/options.ts';
import type { Requester } from '../transport/requester.ts';
import { Listing, wrongCursor } from '../values/listing.ts';
import { idText, printable } from '../values/printable.ts';

export interface SessionDetails extends SessionInfo {
  /** The locks that it holds or waits for. */
  readonly locks: readonly SessionLock[];
  /** There are more locks than one answer carries. */
  readonly more: boolean;
}

export interface SessionListOptions {
  /** How many sessions one page has at most, 1 to 1,000. Default 100. */
  readonly pageSize?: number | undefined;
  /** Only sessions that have all of these attributes, with values that begin like these. Default: all. */
  readonly attributes?: Readonly<Record<string, string>> | undefined;
  /**
   * Only sessions that this user began; `''`: only those that were begun without a user. Default: all, which needs
   * `steer` on all locks while authentication is on.
   */
  readonly owner?: string | undefined;
}

export const SESSION_LIST_OPTIONS = optionSet<SessionListOptions>('list of sessions', {
  ...{ pageSize: count(1, SESSIONS_LIMIT_MAX), attributes, owner: textOrNone },
});

export interface SessionCloseOptions {
  /** Close it only if it is this incarnation of the id. Default 0: any. */
  readonly incarnation?: number | undefined;
}

export const SESSION_CLOSE_OPTIONS = optionSet<SessionCloseOptions>('close of a session', { incarnation: revision });

const LIST_PAGE = 100;

/** Inspects sessions of any client, and ends them. */
export class Sessions {
  readonly #requester: Requester;
  readonly #timeoutMs: number;

  constructor(requester: Requester, timeoutMs: number) {
    this.#requester = requester;
    this.#timeoutMs = timeoutMs;
  }

  /** All sessions, in the order of their ids. */
  list(options: SessionListOptions = {}): Listing<SessionInfo> {
    checkOptions(SESSION_LIST_OPTIONS, options);
    const { pageSize: limit = LIST_PAGE, attributes = {}, owner } = options;
    return new Listing(async (cursor) => {
      const after = cursor === undefined ? 0n : sessionOfCursor(cursor);
      const query = { type: 'sessions', after, limit, attributes, ...(owner !== undefined && { owner }) } as const;
      const { result } = await this.#requester.query(query, { timeoutMs: this.#timeoutMs });
      if (result.type !== 'sessions') throw unexpected(result.type);
      return { items: printable(result.sessions), cursor: result.next === 0n ? undefined : idText(result.next) };
    });
  }

  /**
   * Returns a session and its locks, by its id or its id as printed by `remora session ls`; undefined when there is
   * none.
   */
  async show(id: bigint | string): Promise<SessionDetails | undefined> {
    const query = { type: 'session', id: idOf(id), incarnation: 0 } as const;
    const { result } = await this.#requester.query(query, { timeoutMs: this.#timeoutMs });
    if (result.type !== 'session') throw unexpected(result.type);
    const { session, locks, more } = result;
    return session === undefined ? undefined : printable({ ...session, locks, more });
  }

  /**
   * Ends a session of any client: releases its locks and deletes its keys, without asking its client. Until that
   * client hears of it, only the fencing version protects against what it still does. The session of another user
   * needs `steer` on all locks, or the role root.
   *
   * @throws ServiceError LEASE_NOT_FOUND when there is no such session, or not this `incarnation` of it.
   */
  async close(id: bigint | string, options: SessionCloseOptions = {}): Promise<void> {
    checkOptions(SESSION_CLOSE_OPTIONS, options);
    const { incarnation = 0 } = options;
    await this.#requester.command({ type: 'leaseRevoke', id: idOf(id), incarnation }, { timeoutMs: this.#timeoutMs });
  }
}

/** Ids as shown to people: 64 bits without a sign, although etcd clients may choose negative ids. */
const HEX = /^[0-9a-f]{1,16}$/i;

function idOf(id: bigint | string): bigint {
  if (typeof id === 'bigint') return requireLease(id, 'session');
  if (typeof id === 'string' && HEX.test(id)) return idOf(BigInt.asIntN(64, BigInt(`0x${id}`)));
  throw new ServiceError(
    'INVALID_ARGUMENT',
    `the id of a session: expected a bigint, or hexadecimal text as printed by 'remora session ls', got ${shown(id)}`,
  );
}

function sessionOfCursor(cursor: string): bigint {
  if (HEX.test(cursor)) return BigInt.asIntN(64, BigInt(`0x${cursor}`));
  throw wrongCursor(cursor);
}

function unexpected(type: string): ServiceError {
  return new ServiceError('INTERNAL', `a question about sessions was answered by a result of another kind: ${type}`);
}
