import { type CommandIdentity, GuidSeries, ServiceError, type Timer } from '@remora/base';
import type { LockId } from '@remora/lock';
import {
  type ClusterView,
  type HealthCondition,
  PIPE_REQUEST_BYTES_MAX,
  pipeConditions,
  pipeView,
  type RangeStatus,
} from '@remora/protocol';
import type { BytesLike } from './kv/keys.ts';
import { Kv } from './kv/kv.ts';
import { lockText } from './lock/acquire-errors.ts';
import { Fence } from './lock/fence.ts';
import { GrantWatches } from './lock/grant-watch.ts';
import { Lock, type LockDeps } from './lock/lock.ts';
import type { LockChoice } from './lock/lock-choice.ts';
import { LockSet } from './lock/lock-set.ts';
import { Locks, lockIdOf } from './lock/locks.ts';
import { type Duration, durationMs, requestMsOf, ttlMsOf } from './options/duration.ts';
import { checkOptions } from './options/known-options.ts';
import { capacity, parties } from './options/option-kinds.ts';
import { requireAttributes } from './options/options.ts';
import type { ClientPorts } from './ports.ts';
import { Barrier, DoubleBarrier } from './primitives/barrier.ts';
import { Election } from './primitives/election.ts';
import { RwLock } from './primitives/rw-lock.ts';
import { Semaphore, type SemaphoreOptions } from './primitives/semaphore.ts';
import { endLeftovers, isCommand, LeaseJournal } from './session/journal.ts';
import { Leases } from './session/leases.ts';
import { Session, type SessionState } from './session/session.ts';
import type { SessionTerms } from './session/session-pace.ts';
import { Sessions } from './session/sessions.ts';
import { lookingSignal } from './transport/abort.ts';
import { type HealthCheck, healthPlan, watchHealth } from './transport/health.ts';
import { clientClosed, isNoAnswer } from './transport/operation.ts';
import { Requester } from './transport/requester.ts';
import { type RetryOptions, retryPolicy } from './transport/retry.ts';
import { type Tracer, Tracing } from './transport/tracing.ts';

export interface ClientOptions {
  /** Gateways, as `host:port`. The client uses one and goes over to another when it is gone or hangs. */
  readonly endpoints: string | readonly string[];
  /**
   * Ask the cluster for its other gateways, and use them when none of `endpoints` is of use: then one endpoint is enough.
   * They are reached at the addresses that nodes advertise (`--advertise-client`), with or without TLS as `endpoints` are;
   * what cannot be reached from here is left alone. Default true.
   */
  readonly discover?: boolean | undefined;
  /** How long one request may take, retries included, unless it says otherwise. Default 10 s, at most 60 s. */
  readonly requestTimeout?: Duration | undefined;
  /** How requests are repeated until then. */
  readonly retry?: RetryOptions | undefined;
  /** How long `connect` looks for a gateway. Default 10 s. */
  readonly connectTimeout?: Duration | undefined;
  /** How long locks outlive this process when it dies or is cut off. Default 10 s. */
  readonly sessionTtl?: Duration | undefined;
  /**
   * The largest request that is sent; raise it together with `--request-bytes-max` of the nodes, which refuse what is
   * above theirs. Default 2 MiB.
   */
  readonly requestBytesMax?: number | undefined;
  /** Shown with this client's sessions, such as its host and process id; a session has at most 16, and 4 KiB of them. */
  readonly attributes?: Readonly<Record<string, string>> | undefined;
  /**
   * Close the client when the process ends by itself or by SIGTERM, SIGINT or SIGHUP, so that others need not wait for
   * its sessions' TTL; the signal then has its usual effect. A signal that the program listens to itself is left to the
   * program, which closes the client when its work is done. Default true.
   */
  readonly releaseOnExit?: boolean | undefined;
  /** Traces how long locks are waited for and held: one of `@opentelemetry/api`, or whatever has its `startSpan`. */
  readonly tracer?: Tracer | undefined;
}

export interface DoubleBarrierOptions {
  /** How many wait for one another, 1 to 100,000. */
  readonly parties: number;
  readonly namespace?: string | undefined;
}

export interface SessionOptions {
  readonly ttl?: Duration | undefined;
  readonly attributes?: Readonly<Record<string, string>> | undefined;
  /** Ends the session, and releases its locks at once, when it has failed some times one after the other. */
  readonly health?: HealthCheck | undefined;
}

function semaphoreOf(deps: LockDeps, name: BytesLike, options: SemaphoreOptions): Semaphore {
  checkOptions('semaphore', options);
  const { permits, namespace } = options;
  capacity(permits, 'permits');
  return new Semaphore(deps, lockIdOf(name, { namespace }), permits);
}

export function endpointsOf({ endpoints }: ClientOptions): readonly string[] {
  const all = typeof endpoints === 'string' ? endpoints.split(',') : endpoints;
  if (Array.isArray(all) && all.every((endpoint) => typeof endpoint === 'string')) return all;
  throw new ServiceError('INVALID_ARGUMENT', "endpoints: text, or a list of texts, such as '127.0.0.1:7480'");
}

const CLOSE_TIMEOUT_MS = 3_000;
/** Once more, for the journal to say what could not be ended. */
const JOURNAL_TIMEOUT_MS = 1_000;
/** Sessions of one client, those of single locks included: each has heartbeats of its own. */
const SESSIONS_MAX = 10_000;
/** Of a lock's name, as it is shown with a session of its own. */

/** An election takes less. */
const STATUS_WAIT_MS = 3_000;

/** A cluster as a client sees it. */
export interface ClientStatus {
  readonly view: ClusterView;
  /** The worst first. */
  readonly conditions: readonly HealthCondition[];
  readonly range: RangeStatus | undefined;
}

/** A connection to a cluster. Close it, or use `await using`: open connections keep the process alive. */
export class RemoraClient implements AsyncDisposable {
  readonly kv: Kv;
  readonly lease: Leases;
  readonly locks: Locks;
  readonly sessions: Sessions;
  readonly fence: Fence;
  readonly #requester: Requester;
  readonly #options: ClientOptions;
  readonly #timeoutMs: number;
  readonly #sessionTtlMs: number;
  readonly #sessions = new Set<Session>();
  readonly #grants: GrantWatches;
  readonly #tracing: Tracing;
  /** Of locks that belong to the client's own session. */
  readonly #deps: LockDeps;
  #session: Session | undefined;
  #opening: Promise<Session> | undefined;
  #attempts = 0;
  readonly #tokens: GuidSeries;
  #closing: Promise<void> | undefined;
  #isClosing = false;
  readonly #beingOpened = new Set<Promise<Session>>();
  #forgetExit: (() => void) | undefined;
  /** Aborts when the client is closed. */
  readonly #stop = new AbortController();

  private constructor(ports: ClientPorts, options: ClientOptions) {
    this.#options = options;
    this.#requester = new Requester(ports, {
      endpoints: endpointsOf(options),
      requestBytesMax: options.requestBytesMax ?? PIPE_REQUEST_BYTES_MAX,
      retry: retryPolicy(options.retry),
    });
    this.#timeoutMs = requestMsOf(options.requestTimeout ?? 10_000, 'requestTimeout');
    if (options.attributes !== undefined) requireAttributes(options.attributes);
    this.#sessionTtlMs = ttlMsOf(options.sessionTtl ?? 10_000, 'sessionTtl');
    this.#tokens = new GuidSeries(ports.random);
    this.#grants = new GrantWatches(this.#requester);
    this.#tracing = new Tracing(options.tracer, (error) => {
      ports.logger.warn({ error: String(error) }, 'the tracer failed: a span is missing');
    });
    this.#deps = this.#lockDeps(() => this.#ownSession());
    this.kv = new Kv(this.#requester, this.#timeoutMs);
    this.lease = new Leases(this.#requester, this.#timeoutMs);
    this.locks = new Locks(this.#requester, this.#timeoutMs);
    this.sessions = new Sessions(this.#requester, this.#timeoutMs);
    this.fence = new Fence((checks) => this.locks.check(checks));
  }

  /** Resolves when a gateway has answered. @throws ServiceError UNAVAILABLE or DEADLINE_EXCEEDED when none does. */
  static async open(ports: ClientPorts, options: ClientOptions): Promise<RemoraClient> {
    let client: RemoraClient | undefined;
    try {
      client = new RemoraClient(ports, options);
      await client.#connect();
      return client;
    } catch (error) {
      ports.backgroundRenewer?.close(); // It was there before the options were looked at.
      if (client !== undefined) client.#requester.close();
      throw error;
    }
  }

  async #connect(): Promise<void> {
    const timeoutMs = durationMs(this.#options.connectTimeout ?? 10_000, 'connectTimeout');
    const { clusterId } = await this.#requester.request(pipeView, undefined, { timeoutMs });
    this.#requester.followLeader();
    if (this.#options.discover ?? true) this.#requester.discovery.begin();
    this.#beginJournal(clusterId);
  }

  /** A lock that belongs to the client's own session, which begins with the first acquire. */
  lock(name: BytesLike, options: { readonly namespace?: string | undefined } = {}): Lock {
    return new Lock(this.#deps, lockIdOf(name, options));
  }

  /** The same lock for readers who share it and writers who do not. */
  rwLock(name: BytesLike, options: { readonly namespace?: string | undefined } = {}): RwLock {
    return new RwLock(this.#deps, lockIdOf(name, options));
  }

  /** Holds up all who wait at it while somebody holds it: the lock of that name, of which others wait to be free. */
  barrier(name: BytesLike, options: { readonly namespace?: string | undefined } = {}): Barrier {
    return new Barrier(this.#deps, lockIdOf(name, options), this.locks);
  }

  /** Lets `parties` begin and end together. A name that is in use as a lock is no such barrier. */
  doubleBarrier(name: BytesLike, options: DoubleBarrierOptions): DoubleBarrier {
    checkOptions('doubleBarrier', options);
    const { parties: together, namespace } = options;
    parties(together, 'parties');
    return new DoubleBarrier(this.#deps, lockIdOf(name, { namespace }), together);
  }

  /** Permits that belong to the client's own session. A name that is in use as a lock is no semaphore. */
  semaphore(name: BytesLike, options: SemaphoreOptions): Semaphore {
    return semaphoreOf(this.#deps, name, options);
  }

  /** An election; leaderships belong to the client's own session unless they have a TTL of their own. */
  election(name: BytesLike, options: { readonly namespace?: string | undefined } = {}): Election {
    return new Election(this.#deps, lockIdOf(name, options));
  }

  /**
   * Several locks at once, all or none, without deadlock; they belong to the client's own session.
   *
   * ```ts
   * await using both = await remora.lockAll(['accounts/1', 'accounts/2']).acquire({ wait: '5s' });
   * ```
   *
   * A `Lock` among them stands for its name. @throws ServiceError INVALID_ARGUMENT when the choices contradict.
   */
  lockAll(choices: readonly LockChoice[]): LockSet {
    return new LockSet(this.#deps, choices);
  }

  /** Opens a further session: locks that live and die together, apart from the client's others. */
  async session(options: SessionOptions = {}): Promise<ClientSession> {
    checkOptions('session', options);
    const health = options.health === undefined ? undefined : healthPlan(options.health);
    const session = await this.#openSession({ ttlMs: this.#ttlMs(options.ttl) }, options.attributes);
    if (health !== undefined) watchHealth(session, health, this.#requester.ports.clock);
    const deps = this.#lockDeps(() => session, session);
    return new ClientSession(session, deps, this.#timeoutMs);
  }

  /**
   * What the gateway knows of the cluster, what is wrong with it, and the state of the first range as its leader tells it:
   * undefined while none does. The leader is waited for only as long as somebody may become it.
   */
  async status(): Promise<ClientStatus> {
    const options = { timeoutMs: this.#timeoutMs };
    const [view, conditions] = await Promise.all([
      this.#requester.request(pipeView, undefined, options),
      this.#requester.request(pipeConditions, undefined, options),
    ]);
    return { view, conditions, range: view.ranges.length === 0 ? undefined : await this.#rangeStatus() };
  }

  async #rangeStatus(): Promise<RangeStatus | undefined> {
    const timeoutMs = Math.min(this.#timeoutMs, STATUS_WAIT_MS);
    try {
      const { result } = await this.#requester.query({ type: 'status' }, { timeoutMs });
      return result.type === 'status' ? result.status : undefined;
    } catch (error) {
      if (error instanceof ServiceError && isNoAnswer(error)) return undefined; // The conditions say why.
      throw error;
    }
  }

  /**
   * Names, in the journal, a command that is about to run under what this client holds, for programs that run others: if
   * this process dies, nothing of it is given back while a process of that command may be left. Durably once this resolves;
   * the command may begin then. A client names one command, the latest. Without a journal it does nothing.
   *
   * @throws ServiceError INTERNAL when the journal cannot be written.
   */
  async nameCommand(command: CommandIdentity): Promise<void> {
    if (!isCommand(command)) {
      throw new ServiceError(
        'INVALID_ARGUMENT',
        'nameCommand: expected the identity of a command, with all its fields',
      );
    }
    await this.#requester.journal?.nameCommand(command);
  }

  /** Ends sessions, which releases everything held at once, then watches and connections. Waits 3 s at most, and 1 s for the journal. */
  close(): Promise<void> {
    this.#isClosing = true; // Before anything is ended: who hears of that may begin something else.
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** What earlier processes have left is given back in the background. */
  #beginJournal(cluster: string): void {
    const { journal, random } = this.#requester.ports;
    if (journal === undefined) return;
    this.#requester.journal = new LeaseJournal(journal, { cluster, random });
    void endLeftovers(journal, cluster, { requester: this.#requester, signal: this.#stop.signal });
  }

  async #close(): Promise<void> {
    this.#forgetExit?.();
    this.#stop.abort();
    // What cannot be revoked now ends by its TTL: there is nobody left to tell.
    await this.#inTime(this.#endSessions(), CLOSE_TIMEOUT_MS);
    this.#requester.ports.backgroundRenewer?.close();
    this.#requester.close();
    const { journal } = this.#requester;
    // A disk may never answer, and a process that is told to end waits for this.
    if (journal !== undefined) await this.#inTime(journal.close(), JOURNAL_TIMEOUT_MS);
  }

  /** Waits for it, and no longer than that. */
  async #inTime(done: Promise<void>, timeoutMs: number): Promise<void> {
    let timer: Timer | undefined;
    const timedOut = new Promise<void>((resolve) => {
      timer = this.#requester.ports.clock.setTimer(timeoutMs, resolve);
    });
    await Promise.race([done, timedOut]);
    timer?.cancel();
  }

  async #endSessions(): Promise<void> {
    const close = (session: Session): Promise<void> => session.close(CLOSE_TIMEOUT_MS);
    // One that is just being opened would otherwise outlive the client by its TTL.
    const opening = [...this.#beingOpened].map((session) => session.then(close));
    for (const session of this.#sessions) session.beginToClose(CLOSE_TIMEOUT_MS); // S9 of `session.ts`, of all of them
    const { endings } = this.#requester;
    await Promise.allSettled([...opening, ...[...this.#sessions].map(close), endings.close()]);
    // Of a lock that was released before its session was closed (beforeClose), and ended that itself.
    await endings.close();
  }

  /** `parent`: leases of locks end with it when it is closed; absent: with the client alone. */
  #lockDeps(session: () => Session | Promise<Session>, parent?: Session): LockDeps {
    const adopt = (own: Session): Session => parent?.adopt(own) ?? own;
    return {
      requester: this.#requester,
      session,
      openLease: async (terms, lock) => adopt(await this.#openLease(terms, lock)),
      resumeSession: async (ref) => {
        // Before it is taken up: nobody else is to lose it for that.
        if (parent?.state === 'closed') throw parent.lossReason ?? clientClosed();
        return adopt(await this.#begin(() => Session.resume(this.#requester, ref, this.#timeoutMs)));
      },
      nextAttempt: () => ++this.#attempts,
      newToken: () => this.#tokens.next(),
      requestTimeoutMs: this.#timeoutMs,
      grants: this.#grants,
      tracing: this.#tracing,
    };
  }

  /** Lost means lost: what is acquired afterwards belongs to a new session. */
  #ownSession(): Session | Promise<Session> {
    if (this.#session?.alive) return this.#session;
    this.#opening ??= this.#openOwnSession().finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  async #openOwnSession(): Promise<Session> {
    this.#session = await this.#openSession({ ttlMs: this.#ttlMs() });
    return this.#session;
  }

  #ttlMs(ttl?: Duration): number {
    return ttl === undefined ? this.#sessionTtlMs : ttlMsOf(ttl, 'ttl');
  }

  async #openLease(terms: SessionTerms | undefined, lock: LockId): Promise<Session> {
    return this.#openSession(terms ?? { ttlMs: this.#ttlMs() }, { lock: lockText(lock) });
  }

  async #openSession(terms: SessionTerms, attributes: Readonly<Record<string, string>> = {}): Promise<Session> {
    return this.#begin(() =>
      Session.open(this.#requester, {
        ...terms,
        timeoutMs: this.#timeoutMs,
        attributes: { ...this.#options.attributes, ...attributes },
      }),
    );
  }

  /** What it opens belongs to the client, and ends with it. */
  async #begin(open: () => Promise<Session>): Promise<Session> {
    if (this.#isClosing) throw clientClosed();
    const sessions = this.#sessions.size + this.#beingOpened.size + this.#requester.endings.size;
    if (sessions >= SESSIONS_MAX) throw tooManySessions();
    this.#hookExit();
    const opening = open().then((session) => {
      this.#beingOpened.delete(opening);
      // In the step in which it is one: it is among these or among those at any time, for whoever ends them all.
      this.#sessions.add(session);
      // As its connection does while there is one: a holder that only waits is not done because the cluster is away for a moment.
      const { liveness } = this.#requester.ports;
      liveness.hold();
      session.onLoss(() => {
        this.#sessions.delete(session);
        liveness.release();
      });
      return session;
    });
    this.#beingOpened.add(opening);
    const session = await opening.finally(() => this.#beingOpened.delete(opening));
    if (this.#isClosing) throw clientClosed();
    return session;
  }

  /** From the first session on: a client that holds nothing leaves the process alone. */
  #hookExit(): void {
    if (this.#forgetExit !== undefined || this.#options.releaseOnExit === false) return;
    this.#forgetExit = this.#requester.ports.exit?.beforeExit(() => this.close());
  }
}

function tooManySessions(): ServiceError {
  const message = `a client has at most ${SESSIONS_MAX} sessions; locks without a ttl of their own share one`;
  return new ServiceError('RESOURCE_EXHAUSTED', message);
}

/** A session of one's own. */
export class ClientSession implements AsyncDisposable {
  readonly #session: Session;
  readonly #deps: LockDeps;
  readonly #timeoutMs: number;
  readonly #controller = new AbortController();

  constructor(session: Session, deps: LockDeps, timeoutMs: number) {
    this.#session = session;
    this.#deps = deps;
    this.#timeoutMs = timeoutMs;
    lookingSignal(this.#controller.signal, () => session.check());
    session.onLoss((reason: ServiceError) => this.#controller.abort(reason));
  }

  /** The lease that the session is; keys may be put under it too. */
  get lease(): bigint {
    return this.#session.ref.lease;
  }

  get ttlMs(): number {
    return this.#session.ttlMs;
  }

  get state(): SessionState {
    return this.#session.state;
  }

  /** Aborts, with the reason, when the session is lost or closed. */
  get signal(): AbortSignal {
    this.#session.check();
    return this.#controller.signal;
  }

  lock(name: BytesLike, options: { readonly namespace?: string | undefined } = {}): Lock {
    return new Lock(this.#deps, lockIdOf(name, options));
  }

  rwLock(name: BytesLike, options: { readonly namespace?: string | undefined } = {}): RwLock {
    return new RwLock(this.#deps, lockIdOf(name, options));
  }

  semaphore(name: BytesLike, options: SemaphoreOptions): Semaphore {
    return semaphoreOf(this.#deps, name, options);
  }

  election(name: BytesLike, options: { readonly namespace?: string | undefined } = {}): Election {
    return new Election(this.#deps, lockIdOf(name, options));
  }

  /** As `RemoraClient.lockAll`; they belong to this session. */
  lockAll(choices: readonly LockChoice[]): LockSet {
    return new LockSet(this.#deps, choices);
  }

  /** Leaves the session to its TTL: what it holds stays until then, and nobody renews it. */
  async orphan(): Promise<void> {
    await this.#session.leave();
  }

  /**
   * Ends the session: its locks are released and its keys deleted, at once.
   *
   * @throws ServiceError UNAVAILABLE, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED or UNKNOWN_OUTCOME when the cluster did not answer:
   *   it is then asked further in the background, until it does or the client is closed.
   */
  async close(): Promise<void> {
    await this.#session.close(this.#timeoutMs);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
