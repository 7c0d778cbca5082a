import { type Random, ServiceError } from '@remora/base';
import { randomLeaseId } from '../etcd/lease-service.ts';
import { toAttributes } from '../lock/lock-requests.ts';
import { readTtlMs } from './claims.ts';
import type { Fields } from './fields.ts';
import { parseSession, type SessionJson, sessionText, validMs } from './lock-words.ts';
import type { RangeCalls } from './range-calls.ts';

/** Sessions that several locks share. */
export class SessionCalls {
  readonly #calls: RangeCalls;
  readonly #random: Random;

  constructor(calls: RangeCalls, random: Random) {
    this.#calls = calls;
    this.#random = random;
  }

  /** Repeated it opens another one; the one that nobody heard of ends by itself. */
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

  /** Releases all that belongs to it. One that is over is closed, so that the call can be repeated. */
  async close(session: string): Promise<{ readonly closed: boolean }> {
    const ref = parseSession(session);
    if (ref.incarnation === 0) throw new ServiceError('INVALID_ARGUMENT', 'which session it is says its whole text');
    return { closed: await this.#calls.close(ref) };
  }
}
