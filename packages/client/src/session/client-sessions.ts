/**
 * The sessions of one client: the one that its locks belong to by default, those that callers open, and those of single
 * locks.
 *
 * CS1. The client knows every session from the moment it asks for one until that session is lost or closed: `close`
 *      ends them all, also those whose grant has not arrived yet.
 * CS2. Lost means lost: after a loss the next acquire opens a new session (S3 of `session.ts`).
 */
import { ServiceError } from '@remora/base';
import type { LockId, SessionRef } from '@remora/lock';
import { lockText } from '../lock/acquire-errors.ts';
import { clientClosed } from '../transport/request-errors.ts';
import { Session } from './session.ts';
import type { SessionDeps } from './session-deps.ts';
import type { SessionTerms } from './session-pace.ts';

/** How long closing a client waits for the cluster to end its sessions. */
export const CLOSE_TIMEOUT_MS = 3_000;
/** Sessions of one client, including those of single locks. Each sends its own heartbeats. */
const SESSIONS_MAX = 10_000;

export interface ClientSessionsOptions {
  readonly timeoutMs: number;
  /** The default TTL of sessions. */
  readonly ttlMs: number;
  /** Shown with every session of the client. */
  readonly attributes: Readonly<Record<string, string>>;
  /** Called before each session begins. */
  readonly onBegin: () => void;
}

export class ClientSessions {
  readonly #deps: SessionDeps;
  readonly #options: ClientSessionsOptions;
  readonly #sessions = new Set<Session>();
  readonly #beingOpened = new Set<Promise<Session>>();
  #own: Session | undefined;
  #openingOwn: Promise<Session> | undefined;
  #isClosing = false;

  constructor(deps: SessionDeps, options: ClientSessionsOptions) {
    this.#deps = deps;
    this.#options = options;
  }

  /** CS2. The session that the client's locks belong to. */
  own(): Session | Promise<Session> {
    if (this.#own?.alive) return this.#own;
    this.#openingOwn ??= this.#openOwn().finally(() => {
      this.#openingOwn = undefined;
    });
    return this.#openingOwn;
  }

  async #openOwn(): Promise<Session> {
    this.#own = await this.open(undefined);
    return this.#own;
  }

  /** Without terms, with the TTL of the client's sessions. @throws ServiceError RESOURCE_EXHAUSTED for one too many. */
  async open(terms: SessionTerms | undefined, attributes: Readonly<Record<string, string>> = {}): Promise<Session> {
    const { timeoutMs, ttlMs, attributes: common } = this.#options;
    const asked = { ...(terms ?? { ttlMs }), timeoutMs, attributes: { ...common, ...attributes } };
    return this.#begin(() => Session.open(this.#deps, asked));
  }

  /** A session for one lock, whose name is shown with it. */
  openForLock(terms: SessionTerms | undefined, lock: LockId): Promise<Session> {
    return this.open(terms, { lock: lockText(lock) });
  }

  /** Takes up the session of an earlier process. @throws ServiceError SESSION_EXPIRED when it has ended. */
  resume(ref: SessionRef): Promise<Session> {
    return this.#begin(() => Session.resume(this.#deps, ref, this.#options.timeoutMs));
  }

  async #begin(open: () => Promise<Session>): Promise<Session> {
    if (this.#isClosing) throw clientClosed();
    const sessions = this.#sessions.size + this.#beingOpened.size + this.#deps.endings.size;
    if (sessions >= SESSIONS_MAX) throw tooManySessions();
    this.#options.onBegin();
    const opening = open().then((session) => {
      // CS1. In one step from one set to the other: it is in either of them at any time.
      this.#beingOpened.delete(opening);
      this.#keep(session);
      return session;
    });
    this.#beingOpened.add(opening);
    const session = await opening.finally(() => this.#beingOpened.delete(opening));
    if (this.#isClosing) throw clientClosed();
    return session;
  }

  /** The sessions that exist at this moment. */
  refs(): readonly SessionRef[] {
    return [...this.#sessions].map(({ ref }) => ref);
  }

  #keep(session: Session): void {
    this.#sessions.add(session);
    // A session keeps the process alive, also while the client has no connection: its holder may only be waiting.
    const { liveness } = this.#deps.requester.ports;
    liveness.hold();
    session.onLoss(() => {
      this.#sessions.delete(session);
      liveness.release();
    });
  }

  /** No session begins from now on. */
  stop(): void {
    this.#isClosing = true;
  }

  /** CS1. Ends all of them, and so releases what they hold. Does not reject. */
  async close(): Promise<void> {
    this.stop();
    const close = (session: Session): Promise<void> => session.close(CLOSE_TIMEOUT_MS);
    const opening = [...this.#beingOpened].map((session) => session.then(close));
    for (const session of this.#sessions) session.beginToClose(CLOSE_TIMEOUT_MS); // S9 of `session.ts`, of all of them
    const { endings } = this.#deps;
    await Promise.allSettled([...opening, ...[...this.#sessions].map(close), endings.close()]);
    // A lock that is released before its session is closed (beforeClose) may have added its own lease since.
    await endings.close();
  }
}

function tooManySessions(): ServiceError {
  const message =
    `a client has at most ${SESSIONS_MAX} sessions: acquire locks without a ttl, maxHold or condition, which share one session,` +
    ' or use another client';
  return new ServiceError('RESOURCE_EXHAUSTED', message);
}
