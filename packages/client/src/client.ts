import { type CommandIdentity, GuidSeries, ServiceError } from '@remora/base';
import { type ClusterView, type HealthCondition, pipeConditions, pipeView, type RangeStatus } from '@remora/protocol';
import {
  type ClientOptions,
  type ClientSettings,
  clientSettings,
  SESSION_OPTIONS,
  type SessionOptions,
} from './client-options.ts';
import { keepRequester } from './client-requester.ts';
import { ClientSession } from './client-session.ts';
import { findCluster } from './find-cluster.ts';
import type { BytesLike } from './kv/keys.ts';
import { Kv } from './kv/kv.ts';
import { Fence } from './lock/fence.ts';
import { GrantWatches } from './lock/grant-watch.ts';
import { Lock } from './lock/lock.ts';
import type { LockChoice } from './lock/lock-choice.ts';
import type { LockDeps } from './lock/lock-deps.ts';
import { type LockOptions, lockAs, lockIdOf, type NamespaceOptions } from './lock/lock-name.ts';
import { LockSet } from './lock/lock-set.ts';
import { Locks } from './lock/locks.ts';
import { Tracing } from './observe/tracing.ts';
import { type Duration, ttlMsOf } from './options/duration.ts';
import { checkOptions } from './options/options.ts';
import type { ClientPorts } from './ports.ts';
import { Barrier, DoubleBarrier, type DoubleBarrierOptions } from './primitives/barrier.ts';
import { Election } from './primitives/election.ts';
import { Every, type EveryOptions, type TickWork } from './primitives/every.ts';
import { RwLock } from './primitives/rw-lock.ts';
import { Semaphore, type SemaphoreOptions } from './primitives/semaphore.ts';
import { type ClientEventName, ClientEvents, type ClientListener } from './session/client-events.ts';
import { CLOSE_TIMEOUT_MS, ClientSessions } from './session/client-sessions.ts';
import { healthPlan, watchHealth } from './session/health.ts';
import { endLeftovers, isCommand, LeaseJournal } from './session/journal.ts';
import { LeaseEndings } from './session/lease-endings.ts';
import { Leases } from './session/leases.ts';
import type { Session } from './session/session.ts';
import { Sessions } from './session/sessions.ts';
import { settledWithin } from './transport/in-time.ts';
import { clientClosed, isNoAnswer } from './transport/request-errors.ts';
import { Requester } from './transport/requester.ts';
import { printable } from './values/printable.ts';

/** After the sessions were closed: the journal then names those that could not be ended. */
const JOURNAL_TIMEOUT_MS = 1_000;
/** Longer than an election takes. */
const STATUS_WAIT_MS = 3_000;

/** A cluster as a client sees it. */
export interface ClientStatus {
  /** What the gateway knows of nodes and ranges. */
  readonly view: ClusterView;
  /** What is wrong with the cluster, the worst first; empty when all is well. */
  readonly conditions: readonly HealthCondition[];
  /** The first range, as its leader describes it; undefined while it has no leader that answers. */
  readonly range: RangeStatus | undefined;
}

/**
 * A connection to a cluster, made by `connect`. Close it, or use `await using`: an open client keeps the process alive.
 */
export class RemoraClient implements AsyncDisposable {
  /** Keys and values. */
  readonly kv: Kv;
  /** Leases for keys. */
  readonly lease: Leases;
  /** Inspects locks of any client, and takes them by force. */
  readonly locks: Locks;
  /** Inspects sessions of any client, and ends them. */
  readonly sessions: Sessions;
  /** Checks fencing versions, for services that a lock protects. */
  readonly fence: Fence;
  readonly #requester: Requester;
  readonly #timeoutMs: number;
  readonly #releaseOnExit: boolean;
  readonly #reentrant: boolean;
  readonly #attributes: Readonly<Record<string, string>>;
  readonly #journal: LeaseJournal | undefined;
  /** Resolves to the id of the cluster once a gateway has answered. */
  readonly #found: Promise<string>;
  readonly #ownSessions: ClientSessions;
  readonly #events: ClientEvents;
  readonly #grants: GrantWatches;
  readonly #tracing: Tracing;
  readonly #tokens: GuidSeries;
  /** For locks that belong to the client's own session. */
  readonly #deps: LockDeps;
  #attempts = 0;
  #closing: Promise<void> | undefined;
  #forgetExit: (() => void) | undefined;
  readonly #forgetCrash: (() => void) | undefined;
  /** Aborts when the client is closed. */
  readonly #stop = new AbortController();

  private constructor(requester: Requester, found: Promise<string>, settings: ClientSettings) {
    const { ports } = requester;
    this.#requester = requester;
    keepRequester(this, requester);
    this.#timeoutMs = settings.requestTimeoutMs;
    this.#releaseOnExit = settings.releaseOnExit;
    this.#reentrant = settings.reentrant;
    this.#attributes = settings.attributes;
    this.#found = found;
    this.#found.catch(() => {}); // `ready` reports it.
    this.#journal = ports.journal && new LeaseJournal(ports.journal, { cluster: found, random: ports.random });
    const { metrics } = requester;
    this.#events = new ClientEvents(ports.logger, (event) => {
      metrics?.count('remora_client_session_events_total', { event });
    });
    const endings = new LeaseEndings(requester, this.#journal);
    this.#ownSessions = new ClientSessions(
      { requester, journal: this.#journal, endings, events: this.#events },
      {
        timeoutMs: this.#timeoutMs,
        ttlMs: settings.sessionTtlMs,
        attributes: settings.attributes,
        onBegin: () => this.#hookExit(),
      },
    );
    this.#tokens = new GuidSeries(ports.random);
    this.#grants = new GrantWatches(requester);
    this.#tracing = new Tracing(settings.tracer, {
      onFailure: (error) => {
        ports.logger.warn({ error: String(error) }, 'the tracer threw an error; a span is missing');
      },
      ...(metrics && { metrics: { collector: metrics, clock: ports.clock } }),
    });
    this.#deps = this.#lockDeps(() => this.#ownSessions.own());
    this.kv = new Kv(requester, this.#timeoutMs);
    this.lease = new Leases(requester, this.#timeoutMs);
    this.locks = new Locks(requester, this.#timeoutMs);
    this.sessions = new Sessions(requester, this.#timeoutMs);
    this.fence = new Fence((checks) => this.locks.check(checks));
    this.#forgetCrash = ports.crash?.beforeCrash(() => this.#ownSessions.refs());
    this.#recover();
  }

  /**
   * Resolves once a gateway has answered; with `lazy` at once.
   *
   * @throws ServiceError UNAVAILABLE when none does within `connectTimeout`.
   */
  static async open(ports: ClientPorts, options: ClientOptions): Promise<RemoraClient> {
    let requester: Requester | undefined;
    try {
      const settings = clientSettings(options);
      requester = new Requester(ports, settings.requester);
      const found = findCluster(requester, settings);
      if (!settings.lazy) await found;
      return new RemoraClient(requester, found, settings);
    } catch (error) {
      ports.backgroundRenewer?.close(); // It was started before the options were checked.
      requester?.close();
      throw error;
    }
  }

  /** Releases, in the background, what earlier processes that used this journal have left. */
  #recover(): void {
    const { journal } = this.#requester.ports;
    if (journal === undefined) return;
    const options = { requester: this.#requester, signal: this.#stop.signal };
    this.#found.then((cluster) => endLeftovers(journal, cluster, options)).catch(() => {}); // It was closed before.
  }

  /**
   * Resolves once a gateway has answered, for clients that were made with `lazy`.
   *
   * @throws ServiceError CANCELED when the client is closed before; UNAUTHENTICATED for wrong credentials, and others
   *   that waiting does not change.
   */
  async ready(): Promise<void> {
    await this.#found;
  }

  /**
   * Calls `listener` for each `suspended`, `resumed` or `lost` of a session of this client. Returns a function that
   * removes it. To stop the work under one lock, use the lock's `signal`.
   */
  on(event: ClientEventName, listener: ClientListener): () => void {
    return this.#events.on(event, listener);
  }

  /** A lock. It belongs to the client's own session, which begins with the first acquire. */
  lock(name: BytesLike, options: LockOptions = {}): Lock {
    return new Lock(...lockAs(this.#deps, name, options));
  }

  /** A lock that readers share and a writer has alone. `lock(name)` is the same lock, held as a writer. */
  rwLock(name: BytesLike, options: LockOptions = {}): RwLock {
    return new RwLock(...lockAs(this.#deps, name, options));
  }

  /** A barrier: waiters pass it once nobody holds it. It is the lock of that name. */
  barrier(name: BytesLike, options: NamespaceOptions = {}): Barrier {
    return new Barrier(this.#deps, lockIdOf(name, options), this.locks);
  }

  /** A barrier at which `parties` begin and end together. Its name may not be in use as a lock or a semaphore. */
  doubleBarrier(name: BytesLike, options: DoubleBarrierOptions): DoubleBarrier {
    return new DoubleBarrier(this.#deps, name, options);
  }

  /** A semaphore. Its permits belong to the client's own session. Its name may not be in use as a lock. */
  semaphore(name: BytesLike, options: SemaphoreOptions): Semaphore {
    return new Semaphore(this.#deps, name, options);
  }

  /** An election. Each leadership has a lease of its own. */
  election(name: BytesLike, options: NamespaceOptions = {}): Election {
    return new Election(this.#deps, lockIdOf(name, options));
  }

  /**
   * Several locks at once, all or none, without deadlock. They belong to the client's own session.
   *
   * ```ts
   * await using both = await remora.lockAll(['accounts/1', 'accounts/2']).acquire({ wait: '5s' });
   * ```
   *
   * A `Lock` among the choices stands for its name.
   *
   * @throws ServiceError INVALID_ARGUMENT when the choices contradict one another.
   */
  lockAll(choices: readonly LockChoice[]): LockSet {
    return new LockSet(this.#deps, choices);
  }

  /**
   * Runs `work` at each multiple of `interval` since 1970 (`'5m'`: at 12:00, 12:05, …), in one of all the processes
   * that call this with the same name. A tick is started at most once. If its process dies or its work fails, it is
   * lost.
   * Ends with `release` of what is returned, or with the client.
   *
   * @throws ServiceError INVALID_ARGUMENT for an interval below 1 s or above 365 days.
   */
  every(interval: Duration, name: string, work: TickWork, options: EveryOptions = {}): Every {
    const newToken = (): string => this.#tokens.next();
    const deps = { ports: this.#requester.ports, kv: this.kv, newToken, attributes: this.#attributes };
    const every = new Every(deps, { interval, name }, { work, options });
    this.#stop.signal.addEventListener('abort', () => void every.release(), { once: true });
    return every;
  }

  /** Opens a further session: its locks are kept alive and released together, apart from the client's other locks. */
  async session(options: SessionOptions = {}): Promise<ClientSession> {
    checkOptions(SESSION_OPTIONS, options);
    const health = options.health === undefined ? undefined : healthPlan(options.health);
    const terms = options.ttl === undefined ? undefined : { ttlMs: ttlMsOf(options.ttl, 'ttl') };
    const session = await this.#ownSessions.open(terms, options.attributes);
    if (health !== undefined) watchHealth(session, health, this.#requester.ports.clock);
    return new ClientSession(
      session,
      this.#lockDeps(() => session, session),
      this.#timeoutMs,
    );
  }

  /**
   * Returns what the gateway knows of the cluster, what is wrong with it, and the state of its first range. Waits for
   * the leader of that range for at most 3 s.
   */
  async status(): Promise<ClientStatus> {
    const options = { timeoutMs: this.#timeoutMs };
    const [view, conditions] = await Promise.all([
      this.#requester.request(pipeView, undefined, options),
      this.#requester.request(pipeConditions, undefined, options),
    ]);
    const range = view.ranges.length === 0 ? undefined : await this.#rangeStatus();
    return printable({ view, conditions, range });
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
   * Names a command in the journal that is about to run under this client's locks, for programs that run other
   * programs. If this process dies, the next client releases the locks only when no process of that command is left.
   * The name is on disk once this resolves; start the command then. A client names one command: the latest. Without a
   * journal this does nothing.
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
    await this.#journal?.nameCommand(command);
  }

  /**
   * Ends all sessions, which releases everything that the client holds, and then closes watches and connections. Waits
   * at most 3 s for the cluster and 1 s for the journal. What could not be ended by then ends by its TTL.
   */
  close(): Promise<void> {
    this.#ownSessions.stop(); // Before anything is ended: listeners that hear of that may try to begin something else.
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(): Promise<void> {
    const { clock, backgroundRenewer } = this.#requester.ports;
    this.#forgetExit?.();
    this.#forgetCrash?.();
    this.#stop.abort();
    await settledWithin(this.#ownSessions.close(), clock, CLOSE_TIMEOUT_MS);
    backgroundRenewer?.close();
    this.#requester.close();
    // A disk may never answer, and a process that has been told to exit waits for this.
    if (this.#journal !== undefined) await settledWithin(this.#journal.close(), clock, JOURNAL_TIMEOUT_MS);
  }

  /** `parent`: the leases of single locks end when it is closed; without it, when the client is closed. */
  #lockDeps(session: () => Session | Promise<Session>, parent?: Session): LockDeps {
    const adopt = (own: Session): Session => parent?.adopt(own) ?? own;
    return {
      requester: this.#requester,
      session,
      openLease: async (terms, lock) => adopt(await this.#ownSessions.openForLock(terms, lock)),
      resumeSession: async (ref) => {
        // Checked before it is taken up: taking it up would take it away from another process.
        if (parent?.state === 'closed') throw parent.lossReason ?? clientClosed();
        return adopt(await this.#ownSessions.resume(ref));
      },
      nextAttempt: () => ++this.#attempts,
      newToken: () => this.#tokens.next(),
      requestTimeoutMs: this.#timeoutMs,
      reentrant: this.#reentrant,
      grants: this.#grants,
      tracing: this.#tracing,
    };
  }

  /** At the first session: a client that holds nothing does not touch the process. */
  #hookExit(): void {
    if (this.#forgetExit !== undefined || !this.#releaseOnExit) return;
    this.#forgetExit = this.#requester.ports.exit?.beforeExit(() => this.close());
  }
}
