import { type Clock, type Engine, LazyMap, type Logger, ServiceError, toServiceError } from '@remora/base';
import { type GrantNews, grantNews, type LockId, type Owner, ownerStatus, queryLocks } from '@remora/lock';
import type { Epoch, LeaseInfo, Query, QueryResult } from '@remora/protocol';
import { intersection } from '../../state/bounds.ts';
import { KvChanges, NO_LOCKS } from '../../state/kv/kv-changes.ts';
import { readHistory } from '../../state/kv/kv-history.ts';
import {
  checkReadRevision,
  fetchAll,
  NOTHING_PREFETCHED,
  type Prefetched,
  wantedByRange,
  wantedByTxn,
} from '../../state/kv/kv-read.ts';
import { scanPlainKeys } from '../../state/kv/kv-scan.ts';
import { NO_OWNERS } from '../../state/leases/lease-ownership.ts';
import { endsEmpty } from '../../state/leases/leases.ts';
import { queryWithin } from '../../state/request-bounds.ts';
import type { IntentWaitQueue } from '../../transactions/intent-wait-queue.ts';
import type { PreparedPart } from '../../transactions/prepared-part.ts';
import type { WatchHub } from '../../watch/watch-hub.ts';
import type { LeaseKeeper } from '../leases/lease-keeper.ts';
import { querySessions } from '../leases/session-queries.ts';
import type { GrantWatches } from '../locks/grant-watches.ts';
import type { LockWaits } from '../locks/lock-waits.ts';
import type { OnCancel } from '../range-options.ts';
import type { ReplicaContext } from '../replica-context.ts';
import { rangeStatusOf } from '../stats/range-status.ts';
import type { ClosedRevisions } from './closed-revisions.ts';

/** `revision`: that of the state that the result shows, if it is not the present one. */
type QueryDone = (error: ServiceError | undefined, result: QueryResult | undefined, revision?: number) => void;
type Interrupt = (error: ServiceError) => void;

interface Awaiting {
  readonly lock: LockId;
  /** Closes its open call. */
  readonly remove: () => void;
}

/** Queries that are answered from a state, once that is known to be current. */
type AtOnce = Exclude<Query, { type: 'closedRevision' }>;

type LockAwait = Extract<Query, { type: 'lockAwait' }>;

/** A query, the epoch with which it came, and the revision that its answer must not be before (`RangeRequest`). */
export interface AskedQuery<Asked extends Query = Query> {
  readonly query: Asked;
  readonly epoch: Epoch;
  readonly notBefore: number;
}

interface QueryDeps {
  readonly engine: Engine;
  readonly clock: Clock;
  readonly keeper: LeaseKeeper;
  readonly waits: LockWaits;
  readonly grants: GrantWatches;
  readonly closing: ClosedRevisions;
  readonly intentWaitQueue: IntentWaitQueue;
  readonly hub: Pick<WatchHub, 'size'>;
  readonly nodeId: number;
  readonly logger: Logger;
}

/**
 * Answers that need no log entry.
 *
 * Q1. Unless it is `serializable`, a query waits for a ReadIndex round begun after its arrival, and is then evaluated
 *     in one synchronous step, or over a view taken in that step.
 * Q2. In that same step its epoch and keys are checked: the range may have been split while it waited (design §4 ▸).
 * Q3. In a range that the master numbers, a read may be at any closed revision: the range has no changes above its last
 *     one up to there.
 * Q4. Keys that a prepared, perhaps already committed, transaction over several ranges may change are read once the
 *     transaction is resolved, unless the read is at a closed revision. A `serializable` query does not wait: a read of
 *     the current state returns the state as it is, and a read at a revision fails if this replica has not reached that
 *     revision. So data at a revision that one replica has closed is not read from another that has not closed it,
 *     whatever that one has applied above it. In that case an answer about the current state carries no revision above
 *     the closed one: a client that watches from the next revision receives what is still to be committed.
 * Q5. A query about the place in a lock's queue, which this leader has applied, waits without a round (Q1): the state
 *     itself answers nothing. Whatever happened since is reported when it is applied here, or the query is repeated
 *     elsewhere once this replica learns that it no longer leads.
 * Q6. A query may name a revision R that was allocated before it arrived (`notBefore`). Its answer then shows
 *     everything that the range writes at or below R (CL6 of ClosedRevisions), and carries the revision of the state
 *     that it shows, or R if that is higher. So no change that the answer lacks has a revision at or below the
 *     answer's: a client that watches from the next one misses nothing. A `serializable` query is answered at once by a
 *     replica that has closed R; otherwise by the leader, as if it were not serializable.
 * Q7. If a query reveals a fault of this program, the answer is INTERNAL: the query changed nothing. If it ended the
 *     node, the client would repeat it at the next leader, and end that one as well. Damaged data, found by an
 *     invariant or a checksum, does end the node.
 */
export class Queries {
  readonly #context: ReplicaContext;
  readonly #deps: QueryDeps;
  /** The handlers that end each query which waits for an event. */
  readonly #awaiting = new LazyMap<Interrupt, Awaiting>();

  constructor(context: ReplicaContext, deps: QueryDeps) {
    this.#context = context;
    this.#deps = deps;
  }

  /** The number of open calls that wait for a lock. */
  get awaiting(): number {
    return this.#awaiting.size;
  }

  execute(asked: AskedQuery, onCancel: OnCancel, done: QueryDone): void {
    const { query, epoch, notBefore } = asked;
    if (query.type === 'status' || (isSerializable(query) && notBefore <= this.#deps.closing.closed)) {
      return this.#evaluate({ query, epoch, notBefore }, 0, onCancel, done);
    }
    if (this.#isMisrouted(asked)) return done(this.#context.staleEpoch(), undefined);
    if (!this.#context.leading) return done(this.#context.notLeader(), undefined);
    if (query.type === 'closedRevision') return this.#closedRevision(query.revision, epoch, onCancel, done);
    if (query.type === 'lockAwait' && this.#awaitsAtOnce(query, onCancel, done)) return;
    const current = isSerializable(query) ? { ...query, serializable: false } : query; // Q6
    if (notBefore === 0) return this.#confirm({ query: current, epoch, notBefore }, onCancel, done);
    const forget = this.#deps.closing.whenUsedUp(notBefore, (error) => {
      if (error !== undefined) done(error, undefined);
      else this.#confirm({ query: current, epoch, notBefore }, onCancel, done);
    });
    onCancel(forget);
  }

  /** Q1. */
  #confirm(asked: AskedQuery<AtOnce>, onCancel: OnCancel, done: QueryDone): void {
    const receivedMs = this.#deps.clock.monotonicMs();
    this.#context.group.readIndex((refused) => {
      if (refused === undefined) this.#evaluate(asked, receivedMs, onCancel, done);
      else if (refused === 'queueFull')
        done(new ServiceError('RESOURCE_EXHAUSTED', 'too many reads are waiting; try again later'), undefined);
      else done(this.#context.notLeader(), undefined);
    });
  }

  /** Q2. */
  #isMisrouted({ query, epoch }: AskedQuery): boolean {
    return this.#context.isStale(epoch) || !queryWithin(this.#context.state.bounds, query);
  }

  /** Q5. Returns false if the answer needs a round. */
  #awaitsAtOnce(query: LockAwait, onCancel: OnCancel, done: QueryDone): boolean {
    if (!this.#context.serving || this.#context.unreadable() !== undefined || this.#holder(query) !== undefined)
      return false;
    const queued = this.#standing(query).type === 'queued';
    if (queued) this.#awaitTurn(query, onCancel, done);
    return queued;
  }

  #evaluate(asked: AskedQuery<AtOnce>, receivedMs: number, onCancel: OnCancel, done: QueryDone): void {
    if (this.#isMisrouted(asked)) return done(this.#context.staleEpoch(), undefined);
    const { query, notBefore } = asked;
    const refused = query.type === 'status' ? undefined : this.#context.unreadable();
    if (refused !== undefined) return done(refused, undefined);
    const holder = this.#holder(query);
    if (holder !== undefined) {
      if (isSerializable(query)) return done(this.#notClosed(), undefined); // Q4
      return this.#awaitEnd(holder.txnId, { asked, receivedMs }, onCancel, done);
    }
    const shown = notBefore === 0 ? done : this.#notBefore(notBefore, done);
    const told = this.#isOpen(query) ? this.#asClosed(shown) : shown;
    let answered = false;
    try {
      this.#answer(asked, receivedMs, onCancel, (...answer) => {
        answered = true;
        told(...answer);
      });
    } catch (error) {
      if (answered) throw error;
      done(this.#asRefusal(error, query), undefined);
    }
  }

  /** Q7. */
  #asRefusal(error: unknown, { type }: AtOnce): ServiceError {
    if (error instanceof ServiceError) return error;
    if (!(error instanceof TypeError || error instanceof RangeError)) throw error;
    this.#deps.logger.error({ query: type, error }, 'a query cannot be answered, by a fault of this program');
    return toServiceError(error);
  }

  #holder(query: AtOnce): PreparedPart | undefined {
    return this.#context.state.transactions.holderOfQuery(query, this.#deps.closing.closed);
  }

  /** Q4. Whether the query shows current data that a prepared transaction may change at an earlier revision. */
  #isOpen(query: AtOnce): boolean {
    return isSerializable(query) && this.#holder({ ...query, serializable: false }) !== undefined;
  }

  /** Q4. */
  #asClosed(done: QueryDone): QueryDone {
    const { closed } = this.#deps.closing;
    return (error, result, revision) => done(error, result, Math.min(revision ?? closed, closed));
  }

  /** Q6. */
  #notBefore(notBefore: number, done: QueryDone): QueryDone {
    return (error, result, revision = this.#context.state.revision) =>
      done(error, result, Math.max(revision, notBefore));
  }

  /** Q4. */
  #notClosed(): ServiceError {
    const message = 'a transaction over several ranges that is prepared here may commit up to that revision';
    return new ServiceError('FUTURE_REVISION', message, { details: { revision: this.#deps.closing.closed } });
  }

  /** Q4. */
  #awaitEnd(
    txnId: string,
    { asked, receivedMs }: { readonly asked: AskedQuery<AtOnce>; readonly receivedMs: number },
    onCancel: OnCancel,
    done: QueryDone,
  ): void {
    const forget = this.#deps.intentWaitQueue.add({
      ...{ txnId, deadlineMs: 0 },
      retry: () => this.#evaluate(asked, receivedMs, onCancel, done),
      fail: (error) => done(error, undefined),
    });
    onCancel(forget);
  }

  #answer({ query, notBefore }: AskedQuery<AtOnce>, receivedMs: number, onCancel: OnCancel, done: QueryDone): void {
    const { state } = this.#context;
    switch (query.type) {
      case 'range': {
        const { op } = query;
        return this.#read(wantedByRange(op), notBefore, (changes, prefetched) => changes.range(op, prefetched), done);
      }
      case 'readTxn': {
        const { txn } = query;
        return this.#read(wantedByTxn(txn), notBefore, (changes, prefetched) => changes.txn(txn, prefetched), done);
      }
      case 'scan':
        return this.#scan(query, done);
      case 'history':
        return this.#history(query, done);
      case 'leaseKeepAlive': {
        const { id, incarnation } = query;
        return this.#deps.keeper.renew({ id, incarnation, receivedMs }, (error, lease) => {
          if (lease === undefined) return done(error, undefined);
          done(undefined, { type: 'leaseKeepAlive', id, incarnation: lease.incarnation, ttlMs: lease.ttlMs });
        });
      }
      case 'leaseTimeToLive':
        return done(undefined, { type: 'leaseTimeToLive', lease: this.#leaseInfo(query.id, query.keys) });
      case 'leaseKeys':
        return done(undefined, { type: 'leaseKeys', keys: state.references.keysOf(query.id, query.incarnation) });
      case 'leases':
        return done(undefined, { type: 'leases', ids: this.#leaseIds() });
      case 'sessions':
      case 'session': {
        const source = {
          state,
          locks: this.#lockReader(),
          remainingMs: (id: bigint) => this.#deps.keeper.remainingMs(id),
        };
        return done(undefined, querySessions(source, query));
      }
      case 'lock':
        return done(undefined, { type: 'lock', result: queryLocks(this.#lockReader(), query.query) });
      case 'lockAwait':
        return this.#lockAwait(query, onCancel, done);
      case 'grantEnd':
        return this.#grantEnd(query, onCancel, done);
      case 'txnStatus':
        return done(undefined, {
          type: 'txnStatus',
          outcome: state.transactions.status(query.txnId, state.rangeTimeMs),
        });
      case 'status':
        return done(undefined, {
          type: 'status',
          status: rangeStatusOf(this.#context, { nodeId: this.#deps.nodeId, watches: this.#deps.hub.size }),
        });
    }
  }

  /** Reads over a view of this moment, like other reads (Q1); the next range answers for what lies behind this one. */
  #scan(query: Extract<Query, { type: 'scan' }>, done: QueryDone): void {
    const { revision, compactRevision, bounds } = this.#context.state;
    checkReadRevision(query.revision, { revision: this.#readable, compactRevision });
    const view = this.#deps.engine.view();
    const newest = query.revision === revision ? { ...query, revision: 0 } : query;
    scanPlainKeys(view, newest, bounds)
      .finally(() => view.release())
      .then(
        (page) => done(undefined, { type: 'scan', ...page }, revision),
        (error: unknown) => done(toServiceError(error), undefined),
      );
  }

  /** Reads over a view of this moment, like other reads (Q1). */
  #history(query: Extract<Query, { type: 'history' }>, done: QueryDone): void {
    const { revision, compactRevision } = this.#context.state;
    const view = this.#deps.engine.view();
    readHistory(view, query, compactRevision)
      .finally(() => view.release())
      .then(
        (page) => done(undefined, { type: 'history', ...page, compactRevision }, revision),
        (error: unknown) => done(toServiceError(error), undefined),
      );
  }

  /** Q3. Applied revisions may be above the closed one, and are readable all the same (Q4). */
  get #readable(): number {
    return Math.max(this.#context.state.revision, this.#deps.closing.closed);
  }

  /** A query reads one state, that of this moment, and its answer carries that state's revision (Q1). */
  #read(
    wanted: ReturnType<typeof wantedByTxn>,
    notBefore: number,
    evaluate: (changes: KvChanges, prefetched: Prefetched) => QueryResult,
    done: QueryDone,
  ): void {
    const { engine } = this.#deps;
    const { revision, compactRevision } = this.#context.state;
    const bounds = { revision: Math.max(this.#readable, notBefore), compactRevision };
    const options = { revision, bounds, owners: NO_OWNERS, locks: NO_LOCKS };
    if (wanted.length === 0) return done(undefined, evaluate(new KvChanges(engine, options), NOTHING_PREFETCHED));
    const view = engine.view();
    fetchAll(view, wanted, { bounds, changing: false })
      .then((prefetched) => evaluate(new KvChanges(engine, { ...options, source: view }), prefetched))
      .finally(() => view.release())
      .then(
        (result) => done(undefined, result, revision),
        (error: unknown) => done(toServiceError(error), undefined),
      );
  }

  /** Closing a revision confirms leadership itself, where that is needed. */
  #closedRevision(revision: number, epoch: Epoch, onCancel: OnCancel, done: QueryDone): void {
    const { closing } = this.#deps;
    const { floor } = closing;
    const forget = closing.whenClosed(revision, (error) => {
      if (error !== undefined) return done(error, undefined);
      // Other ranges may have some of the keys now, and those have closed nothing.
      if (this.#context.isStale(epoch)) return done(this.#context.staleEpoch(), undefined);
      done(undefined, { type: 'closedRevision', closed: closing.closed, floor });
    });
    onCancel(forget);
  }

  /**
   * Answers when the owner is no longer waiting: at once if it is not in the queue, otherwise when the queue changes.
   */
  #lockAwait(query: LockAwait, onCancel: OnCancel, done: QueryDone): void {
    if (!this.#context.leading) return done(this.#context.notLeader(), undefined);
    const result = this.#standing(query);
    if (result.type !== 'queued') return done(undefined, { type: 'lockAwait', result });
    this.#awaitTurn(query, onCancel, done);
  }

  #standing({ lock, owner }: LockAwait): ReturnType<typeof ownerStatus> {
    const sessionAlive = (session: Owner['session']) => this.#isAlive(session, lock);
    return ownerStatus({ ...this.#lockReader(), sessionAlive }, lock, owner);
  }

  #awaitTurn({ lock, owner }: LockAwait, onCancel: OnCancel, done: QueryDone): void {
    this.#await(
      { lock, onCancel },
      (error) => done(error, undefined),
      (happened) =>
        this.#deps.waits.add(lock, owner, (result) => happened(() => done(undefined, { type: 'lockAwait', result }))),
    );
  }

  /** Answers when the grant is no longer the current one, or its holder is asked to end it. */
  #grantEnd(query: Extract<Query, { type: 'grantEnd' }>, onCancel: OnCancel, done: QueryDone): void {
    const { lock, version, known, session } = query;
    if (!this.#context.leading) return done(this.#context.notLeader(), undefined);
    const tell = (news: GrantNews): void => {
      if (news !== 'ended') done(undefined, { type: 'grantAsked', revocation: news });
      else done(undefined, { type: 'grantEnd', sessionAlive: this.#isAlive(session, lock) });
    };
    const news = grantNews(this.#lockReader(), lock, { version, known });
    if (news !== undefined) return tell(news);
    this.#await(
      { lock, onCancel },
      (error) => done(error, undefined),
      (happened) => this.#deps.grants.add(lock, { version, known }, (late) => happened(() => tell(late))),
    );
  }

  /** Keeps a query open until the awaited event, until the caller gives up, or until another replica has to answer. */
  #await(
    { lock, onCancel }: { readonly lock: LockId; readonly onCancel: OnCancel },
    interrupt: Interrupt,
    begin: (happened: (answer: () => void) => void) => () => void,
  ): void {
    const remove = begin((answer) => {
      if (this.#awaiting.delete(interrupt)) answer();
    });
    this.#awaiting.set(interrupt, { lock, remove });
    onCancel(() => {
      this.#awaiting.delete(interrupt);
      remove();
    });
  }

  /**
   * Waiters have to ask elsewhere: all of them when leadership is lost, or those for the locks that `which` picks. The
   * log keeps what they wait for.
   */
  interrupt(error: ServiceError, which: (lock: LockId) => boolean = () => true): void {
    for (const [interrupt, { lock, remove }] of [...this.#awaiting]) {
      if (!which(lock)) continue;
      this.#awaiting.delete(interrupt);
      remove();
      interrupt(error);
    }
  }

  #isAlive(session: Owner['session'], lock: LockId): boolean {
    return this.#context.state.leaseOwnership.alive(session, lock);
  }

  #lockReader() {
    const { engine } = this.#deps;
    return {
      timeMs: this.#context.state.rangeTimeMs,
      get: (key: Uint8Array) => engine.get(key),
      scan: (start: Uint8Array, end: Uint8Array, limit: number) => {
        const span = intersection({ start, end }, this.#context.state.bounds.routed);
        return span === undefined ? [] : engine.scanResident({ ...span, limit });
      },
    };
  }

  /** The lease that ends first comes first, as in etcd. */
  #leaseIds(): readonly bigint[] {
    const { keeper } = this.#deps;
    const ends = [...this.#context.state.leases.all()].map(({ id, ttlMs }) => ({
      id,
      remainingMs: keeper.remainingMs(id) ?? ttlMs,
    }));
    return ends.sort((a, b) => a.remainingMs - b.remainingMs).map(({ id }) => id);
  }

  #leaseInfo(id: bigint, withKeys: boolean): LeaseInfo {
    const lease = this.#context.state.leases.get(id);
    if (lease === undefined) return { id, ...UNKNOWN_LEASE };
    return {
      id,
      incarnation: lease.incarnation,
      grantedTtlMs: lease.ttlMs,
      remainingMs: this.#deps.keeper.remainingMs(id) ?? lease.ttlMs,
      keys: withKeys ? this.#context.state.leases.attached.keys(id) : [],
      attributes: lease.attributes,
      endsEmpty: endsEmpty(lease),
      ...(lease.owner !== undefined && { owner: lease.owner }),
    };
  }
}

const UNKNOWN_LEASE = {
  ...{ incarnation: 0, grantedTtlMs: 0, remainingMs: -1, keys: [], attributes: {}, endsEmpty: false },
} as const;

function isSerializable(query: Query): query is Extract<Query, { type: 'range' | 'readTxn' }> {
  return (query.type === 'range' || query.type === 'readTxn') && query.serializable;
}
