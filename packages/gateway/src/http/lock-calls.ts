import { jsonBytes, ServiceError, toServiceError } from '@remora/base';
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

export interface ReleasedJson {
  readonly released: boolean;
  /** Why nothing was released, if nothing was. */
  readonly code?: string;
}

/** The remaining time is shown for at most this many holders; each takes a query of its own. */
const TERMS_MAX = 16;
const NOT_HELD: readonly string[] = ['LOCK_NOT_HELD', 'LOCK_WRONG_OWNER', 'SESSION_EXPIRED'];

/**
 * Calls over HTTP that change a lock or ask about locks, and do not wait.
 *
 * HL1. Renew and release take the fields that acquire answered, and can be repeated.
 * HL2. An acquire that a release with the same token overtakes does not get the lock, even if the release finds no
 *      session.
 * HL3. A release is several commands. If a later one fails, the answer is UNKNOWN_OUTCOME: its own error would say that
 *      nothing was changed. A repeated call does the rest.
 */
export class LockCalls {
  readonly #calls: RangeCalls;

  constructor(calls: RangeCalls) {
    this.#calls = calls;
  }

  /** Renews the session of a holder. @throws ServiceError LOCK_NOT_HELD or SESSION_EXPIRED if the lock is lost. */
  async renew(lock: LockId, fields: Fields): Promise<SessionJson> {
    const owner = { token: fields.text('token'), session: fields.required('session', fields.text('session')) };
    const version = fields.required('version', fields.integer('version'));
    fields.ignored(...OF_THE_GRANT).end();
    const query = { type: 'check', checks: [{ lock, version }] } as const;
    refuse(validateLockQuery(query));
    const { ref, ttlMs } = await this.#calls.renew(parseSession(owner.session));
    // After the renewal, which keeps the lock from then on. Exempt from the limit: a refusal would hide that it was
    // renewed.
    const { current } = await this.#calls.ask(query, { ofHeartbeat: true });
    if (current[0] !== true) throw new ServiceError('LOCK_NOT_HELD', 'the lock is lost: it was released or taken away');
    return { session: sessionText(ref), ttlMs, validMs: validMs(ttlMs) };
  }

  /**
   * Converts an exclusive hold to a shared one without releasing it; a waiting upgrade of it is cancelled.
   *
   * @throws ServiceError LOCK_NOT_HELD or SESSION_EXPIRED if the lock is lost.
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
   * Releases the lock, or leaves its queue or barrier. It is no error if the lock is no longer held, so the call can be
   * repeated.
   *
   * @throws ServiceError UNKNOWN_OUTCOME if only a part of it is known to be done.
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

  /** Finds the session by the token if the client does not name it. Resolves with undefined if it has ended. */
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
   * HL2. The acquire may be in flight, and its session not opened yet. This opens the session with the command that the
   * acquire would use, and ends it: the acquire finds a session that has ended, as long as the command is remembered.
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
    // The owner may wait in the queue, have been granted the lock meanwhile, or wait for others to leave a barrier.
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

  /**
   * Takes a lock from its holders. Repeated without `upToVersion` and the same `requestId`, it would take it from later
   * holders, too.
   */
  async forceRelease(lock: LockId, fields: Fields): Promise<{ readonly version: number }> {
    const by = fields.text('by');
    const reason = fields.text('reason');
    const upToVersion = fields.integer('upToVersion', { min: 1, max: Number.MAX_SAFE_INTEGER });
    const chosen = fields.shortText('requestId', REQUEST_ID_MAX);
    fields.end();
    const options =
      chosen === undefined ? {} : { ...this.#calls.once(chosenRequestId(lock, chosen)), isChosenId: true };
    const said = { ...(by === undefined ? {} : { by }), ...(reason === undefined ? {} : { reason }) };
    const command = { type: 'forceRelease', lock, ...said, ...(upToVersion && { upToVersion }) } as const;
    refuse(validateLockCommand(command));
    const { version } = unlessRefused(await this.#calls.lock(command, options), 'released');
    return { version };
  }

  /** Asks the holders to release the lock; they are notified, and may decline. */
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

  /** Sets the data of a holder. @throws ServiceError LOCK_NOT_HELD if the grant has ended. */
  async setData(lock: LockId, fields: Fields): Promise<{ readonly version: number }> {
    const { session, token, version } = readGrantee(fields);
    const data = fields.required('data', fields.bytes('data'));
    fields.ignored(...OF_THE_GRANT).end();
    const command = { type: 'setData', lock, owner: { session, token }, version, data } as const;
    refuse(validateLockCommand(command));
    unlessRefused(await this.#calls.lock(command), 'granted');
    return { version };
  }

  /** Records how often a holder has entered the lock. @throws ServiceError LOCK_NOT_HELD if the grant has ended. */
  async setDepth(lock: LockId, fields: Fields): Promise<{ readonly version: number; readonly depth: number }> {
    const { session, token, version } = readGrantee(fields);
    const depth = fields.required('depth', fields.integer('depth'));
    fields.ignored(...OF_THE_GRANT).end();
    const command = { type: 'setDepth', lock, owner: { session, token }, version, depth } as const;
    refuse(validateLockCommand(command));
    unlessRefused(await this.#calls.lock(command), 'granted');
    return { version, depth };
  }

  /** Removes the data that earlier holders have left with the lock. */
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
      // The session may be in another range, which may be unavailable: then the lock is shown without it.
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

/** HL3. A later step of a release. */
function theRest<Result>(step: Promise<Result>): Promise<Result> {
  return step.catch((thrown: unknown) => {
    const cause = toServiceError(thrown);
    if (cause.code === 'INTERNAL') throw cause;
    const message = 'it is not known whether the whole release was carried out; repeat the call';
    throw new ServiceError('UNKNOWN_OUTCOME', message, { cause });
  });
}

/** A release that also refuses all earlier requests of its owner that arrive later. */
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
