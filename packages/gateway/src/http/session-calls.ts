import { jsonBytes, type Random, ServiceError } from '@remora/base';
import type { SessionLock } from '@remora/lock';
import type { SessionInfo } from '@remora/protocol';
import { randomLeaseId } from '../etcd/lease-service.ts';
import { toAttributes } from '../lock/lock-requests.ts';
import { readTtlMs } from './acquire-request.ts';
import type { Fields } from './fields.ts';
import type {
  SessionAnswer,
  SessionInfoJson,
  SessionLockJson,
  SessionLocksAnswer,
  SessionsAnswer,
} from './json/locks.ts';
import { parseSession, type SessionJson, sessionText, termsJson, validMs } from './lock-json.ts';
import { type RangeCalls, sessionOver } from './range-calls.ts';
import { onlyThese, type Target, text, wholeNumber } from './targets.ts';

const LIST_LIMIT_DEFAULT = 100;

/** Sessions that several locks share. */
export class SessionCalls {
  readonly #calls: RangeCalls;
  readonly #random: Random;
  readonly #wallMs: () => number;

  constructor(calls: RangeCalls, random: Random, wallMs: () => number) {
    this.#calls = calls;
    this.#random = random;
    this.#wallMs = wallMs;
  }

  /** Opens a session. A repeated call opens another one; the first expires. */
  async open(fields: Fields): Promise<SessionJson> {
    const ttlMs = readTtlMs(fields);
    const attributes = toAttributes(fields.textMap('attributes') ?? {});
    fields.end();
    const opened = await this.#calls.open({ id: randomLeaseId(this.#random), ttlMs, attributes });
    return { session: sessionText(opened.ref), ttlMs: opened.ttlMs, validMs: validMs(opened.ttlMs) };
  }

  /** @throws ServiceError SESSION_EXPIRED */
  async renew(session: string, fields: Fields): Promise<SessionJson> {
    fields.ignored('session', 'ttlMs', 'validMs').end();
    const { ref, ttlMs } = await this.#calls.renew(parseSession(session));
    return { session: sessionText(ref), ttlMs, validMs: validMs(ttlMs) };
  }

  async list({ query }: Target): Promise<SessionsAnswer> {
    onlyThese(query, ['after', 'limit', 'owner']);
    const after = query.get('after');
    const owner = query.get('owner');
    const { sessions, next } = await this.#calls.sessions(
      after === undefined ? 0n : parseSession(text(after, 'after')).lease,
      wholeNumber(query, 'limit', LIST_LIMIT_DEFAULT),
      owner === undefined ? undefined : text(owner, 'owner'),
    );
    const more = next !== 0n;
    return {
      sessions: sessions.map(infoJson),
      more,
      ...(more ? { next: sessionText({ lease: next, incarnation: 0 }) } : {}),
    };
  }

  /** @throws ServiceError SESSION_EXPIRED */
  async show(session: string): Promise<SessionAnswer> {
    const { info, locks, more } = await this.#shown(session);
    return { ...infoJson(info), locks: locks.map(lockJson), more };
  }

  /** What it holds, and what it waits for. @throws ServiceError SESSION_EXPIRED */
  async locks(session: string): Promise<SessionLocksAnswer> {
    const { locks, more } = await this.#shown(session);
    const [holds, waits] = [locks.filter(isHold), locks.filter((lock) => !isHold(lock))];
    return { holds: holds.map(lockJson), waits: waits.map(lockJson), more, nowMs: this.#wallMs() };
  }

  async #shown(session: string) {
    const { lease, incarnation } = parseSession(session);
    const { session: info, locks, more } = await this.#calls.session(lease);
    if (info === undefined || (incarnation !== 0 && info.incarnation !== incarnation)) throw sessionOver();
    return { info, locks, more };
  }

  /** Ends a session and releases its locks. Returns `closed: false` if it had ended, so the call can be repeated. */
  async close(session: string): Promise<{ readonly closed: boolean }> {
    const ref = parseSession(session);
    if (ref.incarnation === 0)
      throw new ServiceError('INVALID_ARGUMENT', 'use the full session id, `lease.incarnation`');
    return { closed: await this.#calls.close(ref) };
  }
}

function infoJson(session: SessionInfo): SessionInfoJson {
  const { id, incarnation, attributes, owner } = session;
  const whose = owner === undefined ? {} : { owner };
  return { session: sessionText({ lease: id, incarnation }), ...termsJson(session), attributes, ...whose };
}

function isHold({ position }: SessionLock): boolean {
  return position === 0;
}

function lockJson({ lock, ownerId, mode, permits, version, position, sinceMs }: SessionLock): SessionLockJson {
  return {
    ...{ namespace: lock.namespace, name: jsonBytes(lock.name), ownerId, mode },
    ...(mode === 'permits' ? { permits } : {}),
    ...(position === 0 ? { version } : { position }),
    ...(sinceMs === 0 ? {} : { sinceMs }),
  };
}
