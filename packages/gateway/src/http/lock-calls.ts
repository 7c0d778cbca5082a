import { EMPTY_BYTES, jsonBytes, ServiceError, toServiceError } from '@remora/base';
import {
  DEFAULT_NAMESPACE,
  type LockCommand,
  type LockId,
  type LockResult,
  type Owner,
  REVOKE_MAX_MS,
  type SessionRef,
  validateLockCommand,
  validateLockQuery,
} from '@remora/lock';
import { REQUEST_ID_MAX, REVOKE_DEFAULT_MS } from '../lock/lock-requests.ts';
import { LEAVE_MARK } from './acquire-calls.ts';
import {
  ATTEMPT,
  chosenRequestId,
  conversionAttempt,
  isOwnSession,
  LEAVE_ATTEMPT,
  OF_THE_GRANT,
  ownLease,
  ownRequestId,
  readGrantee,
  TTL_DEFAULT_MS,
} from './acquire-request.ts';
import type { Fields } from './fields.ts';
import {
  type GrantJson,
  grantJson,
  type LockJson,
  lockJson,
  parseSession,
  type SessionJson,
  sessionText,
  termsJson,
  validMs,
} from './lock-json.ts';
import { type RangeCalls, refuse, unlessRefused } from './range-calls.ts';
import { onlyThese, percentEncoded, type Target, wholeNumber } from './targets.ts';

export interface ReleasedJson {
  readonly released: boolean;
  /** Why nothing was released. */
  readonly code?: string;
}

const LIST_LIMIT_DEFAULT = 100;
/** Of so many holders it is shown how long they keep the lock: each is a question of its own. */
const TERMS_MAX = 16;
const NOT_HELD: readonly string[] = ['LOCK_NOT_HELD', 'LOCK_WRONG_OWNER', 'SESSION_EXPIRED'];

/**
 * What is done over HTTP with a lock that is held, and what is asked about locks.
 *
 * HL1. Renewing and releasing take what acquire answered, and can be repeated.
 * HL2. Nothing is acquired with a token by a call that a release of it overtook: also where the release finds no session.
 * HL3. A release is several commands. When one of the later ones is refused, that is not told as it is: it would say that
 *      nothing was changed. Repeated, it does the rest.
 */
export class LockCalls {
  readonly #calls: RangeCalls;

  constructor(calls: RangeCalls) {
    this.#calls = calls;
  }

  /** @throws ServiceError LOCK_NOT_HELD or SESSION_EXPIRED when the lock is lost. */
  async renew(lock: LockId, fields: Fields): Promise<SessionJson> {
    const owner = { token: fields.text('token'), session: fields.required('session', fields.text('session')) };
    const version = fields.required('version', fields.integer('version'));
    fields.ignored(...OF_THE_GRANT).end();
    const query = { type: 'check', checks: [{ lock, version }] } as const;
    refuse(validateLockQuery(query));
    const { ref, ttlMs } = await this.#calls.renew(parseSession(owner.session));
    // Afterwards: that it is held now is what the renewal makes last. Refused, it would be told that it was not renewed.
    const { current } = await this.#calls.ask(query, { ofHeartbeat: true });
    if (current[0] !== true) throw new ServiceError('LOCK_NOT_HELD', 'the lock is lost: it was released or taken away');
    return { session: sessionText(ref), ttlMs, validMs: validMs(ttlMs) };
  }

  /**
   * The lock stays held, shared from now on; an upgrade that waits is given up.
   *
   * @throws ServiceError LOCK_NOT_HELD or SESSION_EXPIRED when the lock is lost.
   */
  async downgrade(lock: LockId, fields: Fields): Promise<GrantJson> {
    const grantee = readGrantee(fields);
    fields.ignored(...OF_THE_GRANT).end();
    const { session, token } = grantee;
    const command = (ref: SessionRef) =>
      ({ type: 'downgrade', lock, owner: { session: ref, token }, attempt: conversionAttempt(grantee) }) as const;
    refuse(validateLockCommand(command(session)));
    const { ref, ttlMs } = await this.#calls.renew(session);
    const granted = unlessRefused(await this.#calls.lock(command(ref)), 'granted');
    return grantJson(token, granted, { ref, ttlMs, ageMs: 0 });
  }

  /**
   * Gives the lock back, or leaves its queue or barrier. What is not held any more is no error, so that the call can be repeated.
   *
   * @throws ServiceError UNKNOWN_OUTCOME when a part of it was done, and maybe no more.
   */
  async release(lock: LockId, fields: Fields): Promise<ReleasedJson> {
    const token = fields.required('token', fields.text('token'));
    const named = fields.text('session');
    fields.ignored('version', ...OF_THE_GRANT).end();
    const session = named === undefined ? undefined : parseSession(named);
    const own = { lease: ownLease({ lock, token }), incarnation: 0 };
    refuse(validateLockCommand(releaseOf(lock, { session: session ?? own, token })));
    const owner = await this.#owner(lock, token, session);
    if (owner === undefined) return { released: false, code: 'SESSION_EXPIRED' };
    const result = await this.#leave(lock, owner);
    if (isOwnSession(owner, lock)) await theRest(this.#calls.close(owner.session));
    if (result.type !== 'refused') return { released: true };
    if (!NOT_HELD.includes(result.code)) refuse(result);
    return { released: false, code: result.code };
  }

  /** Who has forgotten the session, or never heard of it, is found by its token. Undefined: it has ended. */
  async #owner(lock: LockId, token: string, session: SessionRef | undefined): Promise<Owner | undefined> {
    if (session !== undefined) return { session, token };
    const own = { lock, token };
    try {
      return { session: (await this.#calls.renew({ lease: ownLease(own), incarnation: 0 })).ref, token };
    } catch (error) {
      if (!(error instanceof ServiceError) || error.code !== 'SESSION_EXPIRED') throw error;
    }
    await this.#spend(own);
    return undefined;
  }

  /**
   * HL2. The acquire may be on its way, and its session not opened yet. It is opened here, by the command that the acquire
   * would do it with, and ended: who comes with that command, as long as it is remembered, finds that it has ended.
   */
  async #spend(own: Pick<Owner, 'token'> & { readonly lock: LockId }): Promise<void> {
    const session = { id: ownLease(own), ttlMs: TTL_DEFAULT_MS, attributes: {} };
    const { ref } = await this.#calls.open(session, ownRequestId(own));
    await theRest(this.#calls.close(ref));
  }

  async #leave(lock: LockId, owner: Owner): Promise<LockResult> {
    const how = { lock, owner, deadlineMs: LEAVE_MARK };
    const released = await this.#calls.lock(releaseOf(lock, owner));
    if (released.type !== 'refused' || released.code !== 'LOCK_NOT_HELD') return released;
    // It may wait, and have been granted since; or have left a barrier, and wait for the others.
    const canceled = [
      await this.#cancel({ ...how, attempt: ATTEMPT }),
      await this.#cancel({ ...how, attempt: LEAVE_ATTEMPT }),
    ];
    return canceled.find(({ released: any }) => any) ?? released;
  }

  async #cancel(
    what: Pick<Extract<LockCommand, { readonly type: 'cancel' }>, 'lock' | 'owner' | 'deadlineMs' | 'attempt'>,
  ): Promise<Extract<LockResult, { readonly type: 'canceled' }>> {
    return unlessRefused(await theRest(this.#calls.lock({ type: 'cancel', ...what })), 'canceled');
  }

  /** Repeated without its request id, it would take the lock from whoever has come since. */
  async forceRelease(lock: LockId, fields: Fields): Promise<{ readonly version: number }> {
    const by = fields.text('by');
    const reason = fields.text('reason');
    const chosen = fields.shortText('requestId', REQUEST_ID_MAX);
    fields.end();
    const options = chosen === undefined ? {} : this.#calls.once(chosenRequestId(lock, chosen));
    const said = { ...(by === undefined ? {} : { by }), ...(reason === undefined ? {} : { reason }) };
    const command = { type: 'forceRelease', lock, ...said } as const;
    refuse(validateLockCommand(command));
    const { version } = unlessRefused(await this.#calls.lock(command, options), 'released');
    return { version };
  }

  /** Asks those who hold it to let go of it; they are told, and are free to agree. */
  async revoke(lock: LockId, fields: Fields): Promise<{ readonly version: number }> {
    const forMs = fields.durationMs('for', { min: 1, max: REVOKE_MAX_MS }) ?? REVOKE_DEFAULT_MS;
    const said = { by: fields.text('by') ?? '', reason: fields.text('reason') ?? '' };
    fields.end();
    const command = { type: 'revoke', lock, ...said, forMs } as const;
    refuse(validateLockCommand(command));
    return { version: unlessRefused(await this.#calls.lock(command), 'revoking').version };
  }

  async setCapacity(lock: LockId, fields: Fields): Promise<{ readonly permits: number; readonly capacity: number }> {
    const capacity = fields.required('capacity', fields.integer('capacity'));
    fields.end();
    const command = { type: 'setCapacity', lock, capacity } as const;
    refuse(validateLockCommand(command));
    const result = unlessRefused(await this.#calls.lock(command), 'capacity');
    return { permits: result.permits, capacity: result.capacity };
  }

  /** @throws ServiceError LOCK_NOT_HELD when the grant has ended. */
  async setData(lock: LockId, fields: Fields): Promise<{ readonly version: number }> {
    const { session, token, version } = readGrantee(fields);
    const data = fields.required('data', fields.bytes('data'));
    fields.ignored(...OF_THE_GRANT).end();
    const command = { type: 'setData', lock, owner: { session, token }, version, data } as const;
    refuse(validateLockCommand(command));
    unlessRefused(await this.#calls.lock(command), 'granted');
    return { version };
  }

  /** For who holds it and counts how often it has entered. @throws ServiceError LOCK_NOT_HELD when the grant has ended. */
  async setDepth(lock: LockId, fields: Fields): Promise<{ readonly version: number; readonly depth: number }> {
    const { session, token, version } = readGrantee(fields);
    const depth = fields.required('depth', fields.integer('depth'));
    fields.ignored(...OF_THE_GRANT).end();
    const command = { type: 'setDepth', lock, owner: { session, token }, version, depth } as const;
    refuse(validateLockCommand(command));
    unlessRefused(await this.#calls.lock(command), 'granted');
    return { version, depth };
  }

  /** What earlier holders have left with the lock. */
  async forget(lock: LockId): Promise<{ readonly forgotten: boolean }> {
    const command = { type: 'forget', lock } as const;
    refuse(validateLockCommand(command));
    return { forgotten: unlessRefused(await this.#calls.lock(command), 'forgotten').any };
  }

  async show(lock: LockId): Promise<LockJson> {
    const query = { type: 'show', lock, allKinds: true } as const;
    refuse(validateLockQuery(query));
    const { state } = await this.#calls.ask(query);
    if (state === undefined) return free(lock);
    const sessions = await Promise.all(
      // The session may be in another range, which may be away: what is known of the lock is shown without it.
      state.holders
        .slice(0, TERMS_MAX)
        .map(({ owner }) => this.#calls.sessionInfo(owner.session).catch(() => undefined)),
    );
    const shown = lockJson(state);
    const holders = shown.holders.map((holder, at) => {
      const session = sessions[at];
      return session === undefined ? holder : { ...holder, ...termsJson(session) };
    });
    return { ...shown, holders };
  }

  async list(
    namespace: string,
    { query: asked }: Target,
  ): Promise<{ readonly locks: readonly LockJson[]; readonly more: boolean; readonly next?: string }> {
    onlyThese(asked, ['prefix', 'after', 'limit']);
    const prefix = asked.get('prefix') ?? EMPTY_BYTES;
    const after = asked.get('after') ?? EMPTY_BYTES;
    const limit = wholeNumber(asked, 'limit', LIST_LIMIT_DEFAULT);
    const query = { type: 'list', namespace, prefix, after, limit, allKinds: true } as const;
    refuse(validateLockQuery(query));
    const { locks, more } = await this.#calls.ask(query);
    const last = locks.at(-1)?.lock.name;
    return {
      locks: locks.map(lockJson),
      more,
      ...(more && last !== undefined ? { next: percentEncoded(last) } : {}),
    };
  }

  async check(fields: Fields): Promise<{ readonly current: readonly boolean[] }> {
    const items = fields.required('checks', fields.list('checks'));
    fields.end();
    const checks = items.map((item) => {
      const namespace = item.text('namespace') ?? DEFAULT_NAMESPACE;
      const name = item.required('name', item.bytes('name'));
      const version = item.required('version', item.integer('version'));
      item.end();
      return { lock: { namespace, name }, version };
    });
    const query = { type: 'check', checks } as const;
    refuse(validateLockQuery(query));
    return { current: (await this.#calls.ask(query)).current };
  }
}

/** HL3. Of what was begun. */
function theRest<Result>(step: Promise<Result>): Promise<Result> {
  return step.catch((thrown: unknown) => {
    const cause = toServiceError(thrown);
    if (cause.code === 'INTERNAL') throw cause;
    const message = 'it is not known whether the whole release was carried out; repeat the call';
    throw new ServiceError('UNKNOWN_OUTCOME', message, { cause });
  });
}

/** Nothing that was asked for with its token is done after it. */
function releaseOf(lock: LockId, owner: Owner): LockCommand {
  return { type: 'release', all: true, lock, owner, deadlineMs: LEAVE_MARK, attempt: LEAVE_ATTEMPT };
}

function free({ namespace, name }: LockId): LockJson {
  return {
    namespace,
    name: jsonBytes(name),
    ...{ kind: 'exclusive', holders: [], holderCount: 0, waiters: [], waiterCount: 0 },
  };
}
