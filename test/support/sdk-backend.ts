import { type Bytes, type Clock, compareBytes, EMPTY_BYTES, equalBytes, ServiceError, type Timer } from '@remora/base';
import type {
  Backend,
  BackendDone,
  LockWatchListener,
  LockWatchOptions,
  RequestOptions,
  WatchControl,
  WatchListener,
  WatchOptions,
} from '@remora/gateway';
import {
  applyLockCommand,
  grantNews,
  type LockCommand,
  type LockEvent,
  type LockId,
  type LockNews,
  type LockOutcome,
  type LockResult,
  type LockState,
  type LockView,
  lockOfName,
  type PublicOwner,
  queryLocks,
  type SessionLock,
  type SessionRef,
  sessionEnded,
} from '@remora/lock';
import type { ClusterView, Command, CommandResult, Query, QueryResult, SessionInfo } from '@remora/protocol';
import { MemoryBackend } from '../e2e/memory-backend.ts';

/** A command as it arrived, before it had any effect. */
export interface SeenCommand {
  readonly requestId: string | undefined;
  readonly deadlineMs: number | undefined;
  readonly command: Command;
}

/** `revision`: of a change of plain keys, which have revisions of their own here. */
interface Outcome {
  readonly error?: ServiceError;
  readonly result?: CommandResult;
  readonly revision?: number;
}

interface FakeSession {
  ttlMs: number;
  condition: SessionInfo['condition'];
  /** The time of its last renewal. */
  renewedMs: number;
  timer: Timer;
  readonly locks: Map<string, LockId>;
}

const WAIT_POLL_MS = 5;
const MARK_MS = 120_000;

/**
 * A cluster in one object for tests of the SDK: keys as in `MemoryBackend`, sessions that expire after a full TTL, the
 * real lock procedures, and each request id applied once.
 */
export class SdkBackend implements Backend {
  readonly nodeId = 1;
  readonly seen: SeenCommand[] = [];
  /** Sessions that ended by their TTL, with the time. */
  readonly expired: { readonly lease: bigint; readonly atMs: number }[] = [];
  /** How often the end of a grant was requested. */
  grantQuestions = 0;
  /** The limit of waiters is reached: a queued acquire keeps its place but gets no notification. */
  waitsFull = false;
  /** Called after a command was applied, before its answer is sent. */
  onApplied: (command: Command) => void = () => {};
  readonly #clock: Clock;
  /** Plain keys, and the leases of these. */
  readonly keys: MemoryBackend;
  readonly #rows = new Map<string, Bytes>();
  readonly #sessions = new Map<bigint, FakeSession>();
  readonly #outcomes = new Map<string, Outcome>();
  readonly #listeners = new Map<LockWatchListener, LockWatchOptions>();
  #events: LockEvent[] = [];
  #revision = 100;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.keys = new MemoryBackend(clock);
  }

  view(): ClusterView {
    return this.keys.view();
  }

  check(): void {}

  rangeTimeMs(): number {
    return 1_000_000 + this.#clock.monotonicMs();
  }

  get sessions(): number {
    return this.#sessions.size;
  }

  /** The TTLs that sessions were granted, as requested. */
  ttlsMs(): readonly number[] {
    return [...this.#sessions.values()].map(({ ttlMs }) => ttlMs);
  }

  /** A new leader gives every session a full TTL, as far as it knows. */
  changeLeader(): void {
    for (const id of this.#sessions.keys()) this.#renew(id);
  }

  watch(options: WatchOptions, listener: WatchListener): WatchControl {
    return this.keys.watch(options, listener);
  }

  /** Watches one lock, or all. */
  watchLocks(options: LockWatchOptions, listener: LockWatchListener): Omit<WatchControl, 'progress'> {
    const { namespace, name, single } = options;
    const begin = (): void => {
      this.#listeners.set(listener, options);
      const revision = this.#revision;
      const news: LockNews[] = [{ type: 'begin', from: EMPTY_BYTES, to: EMPTY_BYTES }];
      const lock = { namespace, name };
      if (single) news.push({ type: 'state', lock, revision, state: this.#show(lock) });
      else {
        const query = {
          type: 'list',
          namespace,
          prefix: name,
          after: EMPTY_BYTES,
          limit: 1_000,
          allKinds: true,
        } as const;
        const listed = queryLocks(this.#view(), query);
        for (const state of listed.type === 'list' ? listed.locks : []) {
          news.push({ type: 'state', lock: state.lock, revision, state });
        }
        news.push({ type: 'live' });
      }
      listener(news);
    };
    this.#clock.setImmediate(begin);
    return {
      cancel: () => this.#listeners.delete(listener),
      pause: () => this.#listeners.delete(listener),
      resume: begin,
    };
  }

  #show(lock: LockId): LockState | undefined {
    const shown = queryLocks(this.#view(), { type: 'show', lock, allKinds: true });
    return shown.type === 'show' ? shown.state : undefined;
  }

  #apply(command: LockCommand): LockOutcome {
    const outcome = applyLockCommand(this.#view(), command);
    this.#tell(command.lock);
    return outcome;
  }

  #tell(lock: LockId): void {
    const events = this.#events;
    this.#events = [];
    if (events.length === 0) return;
    for (const [listener, { namespace, name, single }] of this.#listeners) {
      const begun = single ? equalBytes(lock.name, name) : equalBytes(lock.name.subarray(0, name.length), name);
      if (begun && lock.namespace === namespace) listener([{ type: 'events', lock, revision: this.#revision, events }]);
    }
  }

  command(command: Command, options: RequestOptions, done: BackendDone<CommandResult>): () => void {
    const { requestId = `made-up.${this.seen.length}`, deadlineMs } = options;
    this.seen.push({ requestId, deadlineMs, command });
    let wanted = true;
    const answer: BackendDone<CommandResult> = (error, reply) => {
      this.onApplied(command);
      if (wanted) done(error, reply);
    };
    this.#clock.setImmediate(() => this.#once(requestId, command, options, answer, () => wanted));
    return () => {
      wanted = false;
    };
  }

  query(query: Query, options: RequestOptions, done: BackendDone<QueryResult>): () => void {
    switch (query.type) {
      case 'leaseKeepAlive': {
        const ttlMs = this.#renew(query.id) ? (this.#sessions.get(query.id)?.ttlMs ?? -1) : -1;
        return this.#reply(done, { type: 'leaseKeepAlive', id: query.id, incarnation: 1, ttlMs });
      }
      case 'lock':
        return this.#reply(done, { type: 'lock', result: queryLocks(this.#view(), query.query) });
      case 'grantEnd':
        return this.#grantEnd(query, options, done);
      case 'sessions': {
        const behind = [...this.#sessions.keys()].filter((id) => id > query.after).sort((a, b) => (a < b ? -1 : 1));
        const page = behind.slice(0, query.limit);
        const next = behind.length > page.length ? (page.at(-1) ?? 0n) : 0n;
        return this.#reply(done, { type: 'sessions', sessions: page.map((id) => this.#sessionInfo(id)), next });
      }
      case 'session': {
        const known = this.#sessions.has(query.id);
        const session = known ? this.#sessionInfo(query.id) : undefined;
        return this.#reply(done, { type: 'session', session, locks: this.#locksOf(query.id), more: false });
      }
      default:
        return this.keys.query(query, options, done);
    }
  }

  #sessionInfo(id: bigint): SessionInfo {
    const { ttlMs = 0, condition, renewedMs = 0 } = this.#sessions.get(id) ?? {};
    const remainingMs = renewedMs + ttlMs - this.#clock.monotonicMs();
    const agreed = condition === undefined ? {} : { condition };
    return { id, incarnation: 1, ttlMs, remainingMs, attributes: {}, ...agreed };
  }

  #locksOf(id: bigint): SessionLock[] {
    const isOfIt = ({ owner }: { readonly owner: PublicOwner }): boolean => owner.session.lease === id;
    return [...(this.#sessions.get(id)?.locks.values() ?? [])].flatMap((lock) => {
      const { holders = [], waiters = [] } = this.#show(lock) ?? {};
      return [
        ...holders.filter(isOfIt).map(({ owner, ...hold }) => {
          return { ...hold, lock, ownerId: owner.id, position: 0, sinceMs: hold.lockTimeMs };
        }),
        ...waiters.filter(isOfIt).map(({ owner, ...at }) => ({ ...at, lock, ownerId: owner.id, version: 0, depth: 0 })),
      ];
    });
  }

  /**
   * Answers when the grant is no longer the current one, or when its holder has to release it (a revocation).
   * DEADLINE_EXCEEDED if neither happens in time.
   */
  #grantEnd(
    { lock, version, session, known }: Extract<Query, { type: 'grantEnd' }>,
    { timeoutMs }: RequestOptions,
    done: BackendDone<QueryResult>,
  ): () => void {
    this.grantQuestions++;
    const endsMs = this.#clock.monotonicMs() + timeoutMs;
    let timer: Timer;
    const poll = (): void => {
      const news = grantNews(this.#view(), lock, { version, known });
      if (news !== undefined && news !== 'ended') {
        const result = { type: 'grantAsked', revocation: news } as const;
        done(undefined, { result, revision: this.#revision, raftTerm: 1 });
      } else if (news === 'ended') {
        const result = { type: 'grantEnd', sessionAlive: this.#sessions.has(session.lease) } as const;
        done(undefined, { result, revision: this.#revision, raftTerm: 1 });
      } else if (this.#clock.monotonicMs() >= endsMs) {
        done(new ServiceError('DEADLINE_EXCEEDED', 'the grant is current'), undefined);
      } else timer = this.#clock.setTimer(WAIT_POLL_MS, poll);
    };
    timer = this.#clock.setTimer(0, poll);
    return () => timer.cancel();
  }

  #reply(done: BackendDone<QueryResult>, result: QueryResult): () => void {
    let wanted = true;
    this.#clock.setImmediate(() => {
      if (wanted) done(undefined, { result, revision: this.#revision, raftTerm: 1 });
    });
    return () => {
      wanted = false;
    };
  }

  #once(
    requestId: string,
    command: Command,
    options: RequestOptions,
    done: BackendDone<CommandResult>,
    wanted: () => boolean,
  ): void {
    const finish = (outcome: Outcome): void => {
      this.#outcomes.set(requestId, outcome);
      const { error, result, revision = this.#revision } = outcome;
      if (result === undefined) done(error ?? new ServiceError('INTERNAL', 'no outcome'), undefined);
      else if (isQueued(result) && command.type === 'lock') {
        this.#await(command.command, options, queuedAt(result, done), wanted);
      } else done(undefined, { result, revision, raftTerm: 1 });
    };
    const known = this.#outcomes.get(requestId);
    if (known !== undefined) return finish(known);
    switch (command.type) {
      case 'leaseGrant':
        if (this.#sessions.has(command.id)) return finish({ error: new ServiceError('LEASE_EXISTS', 'it exists') });
        this.#sessions.set(command.id, {
          ...{ ttlMs: command.ttlMs, condition: command.condition },
          ...{ renewedMs: 0, timer: { cancel() {} }, locks: new Map() },
        });
        this.#renew(command.id);
        return finish({ result: { type: 'leaseGrant', id: command.id, incarnation: 1, ttlMs: command.ttlMs } });
      case 'leaseChange': {
        const session = this.#sessions.get(command.id);
        if (session === undefined) return finish({ error: new ServiceError('LEASE_NOT_FOUND', 'no such lease') });
        session.ttlMs = command.ttlMs;
        session.condition = command.condition;
        return finish({ result: { type: 'leaseChange', ttlMs: command.ttlMs } });
      }
      case 'leaseRevoke':
        this.#endSession(command.id);
        return finish({ result: { type: 'leaseRevoke' } });
      case 'lock': {
        this.#revision++;
        const { result } = this.#apply(this.#withMark(command.command));
        return finish({ result: { type: 'lock', result } });
      }
      default:
        this.keys.command(command, options, (error, reply) =>
          finish(
            error === undefined && reply !== undefined
              ? { result: reply.result, revision: reply.revision }
              : error === undefined
                ? {}
                : { error },
          ),
        );
    }
  }

  /** As in gateways: a cancel, and a release that asks for it, leave a mark that outlives requests in progress. */
  #withMark(command: LockCommand): LockCommand {
    const leaves = command.type === 'cancel' || (command.type === 'release' && command.deadlineMs !== 0);
    return leaves ? { ...command, deadlineMs: this.rangeTimeMs() + MARK_MS } : command;
  }

  /**
   * Asks again until the waiter is granted, or its time is over. Like a gateway, but without the leader's open calls.
   */
  #await(command: LockCommand, options: RequestOptions, done: BackendDone<CommandResult>, wanted: () => boolean): void {
    if (this.waitsFull) {
      const details = { queued: true };
      return done(new ServiceError('RESOURCE_EXHAUSTED', 'too many wait', { details }), undefined);
    }
    const waitMs = options.waitMs ?? 0;
    const endsMs = waitMs === 0 ? Number.POSITIVE_INFINITY : this.#clock.monotonicMs() + waitMs;
    const asked =
      command.type === 'acquire' && waitMs > 0 ? { ...command, waitUntilMs: this.rangeTimeMs() + waitMs } : command;
    const poll = (): void => {
      if (!wanted()) return;
      this.#revision++; // Each grant has a unique version.
      let result: LockResult = this.#apply(asked).result;
      if (result.type === 'queued' && this.#clock.monotonicMs() < endsMs) {
        this.#clock.setTimer(WAIT_POLL_MS, poll);
        return;
      }
      if (result.type === 'queued' && command.type === 'acquire') {
        const { lock, owner, attempt = 0 } = command;
        // A client that numbers its acquires may have asked again elsewhere: the waiter's time is over, and it is not
        // granted any more.
        if (attempt === 0) this.#apply({ type: 'cancel', lock, owner, deadlineMs: 0 });
        result = { type: 'refused', code: 'LOCK_TIMEOUT', message: 'too late' };
      }
      done(undefined, { result: { type: 'lock', result }, revision: this.#revision, raftTerm: 1 });
    };
    poll();
  }

  #renew(id: bigint): boolean {
    const session = this.#sessions.get(id);
    if (session === undefined) return false;
    session.timer.cancel();
    session.renewedMs = this.#clock.monotonicMs();
    session.timer = this.#clock.setTimer(session.ttlMs, () => {
      this.expired.push({ lease: id, atMs: this.#clock.monotonicMs() });
      this.#endSession(id);
    });
    return true;
  }

  #endSession(id: bigint): void {
    const session = this.#sessions.get(id);
    if (session === undefined) return;
    session.timer.cancel();
    this.#sessions.delete(id);
    this.#revision++;
    for (const lock of session.locks.values()) {
      sessionEnded(this.#view(), { lease: id, incarnation: 1 }, lock);
      this.#tell(lock);
    }
  }

  #view(): LockView {
    const rows = this.#rows;
    const nameOf = (key: Bytes): string => Buffer.from(key).toString('latin1');
    const locksOf = (session: SessionRef) => this.#sessions.get(session.lease)?.locks;
    return {
      revision: this.#revision,
      timeMs: this.rangeTimeMs(),
      wallMs: this.#clock.wallMs(),
      get: (key) => rows.get(nameOf(key)),
      put: (key, value) => rows.set(nameOf(key), value),
      delete: (key) => rows.delete(nameOf(key)),
      scan: (start, end, limit) => {
        const found = [...rows]
          .map(([name, value]) => ({ key: Buffer.from(name, 'latin1'), value }))
          .filter(({ key }) => compareBytes(start, key) <= 0 && (end.length === 0 || compareBytes(key, end) < 0))
          .sort((a, b) => compareBytes(a.key, b.key));
        return limit === 0 ? found : found.slice(0, limit);
      },
      sessionAlive: (session) => this.#sessions.has(session.lease),
      getNamed: (name) => rows.get(name),
      putNamed: (name, value) => rows.set(name, value instanceof Uint8Array ? value : value.encode()),
      deleteNamed: (name) => rows.delete(name),
      attach: (session, { lock }) => locksOf(session)?.set(lock, lockOfName(lock)),
      isAttached: (session, { lock }) => locksOf(session)?.has(lock) === true,
      detach: (session, { lock }) => locksOf(session)?.delete(lock),
      onEvent: (event) => this.#events.push(event),
    };
  }
}

function queuedAt(result: CommandResult, done: BackendDone<CommandResult>): BackendDone<CommandResult> {
  if (result.type !== 'lock' || result.result.type !== 'queued') return done;
  const { position } = result.result;
  return (error, reply) => done(error, reply === undefined ? undefined : { ...reply, queuedAt: position });
}

function isQueued(result: CommandResult): boolean {
  return result.type === 'lock' && result.result.type === 'queued';
}
