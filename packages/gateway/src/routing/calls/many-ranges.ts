import { binaryString, compareBytes, keyAfter, ServiceError, type Span, toServiceError } from '@remora/base';
import { lockSpan } from '@remora/lock';
import type { CommandResult, Query, QueryResult, RangeReply, RangeStatus, SessionQuery } from '@remora/protocol';
import { CLUSTER, type Clearance } from '../../authorisation/clearance.ts';
import type { BackendDone } from '../../backend.ts';
import { keysSpan, LEASES, LOCKS, PLAIN_KEYS, routingKey, routingSpan } from '../routes/request-keys.ts';
import { compactRanges } from './compaction.ts';
import { eachOf } from './each-of.ts';
import { type LockListQuery, listLocks } from './lock-lists.ts';
import type { NewestRevision } from './newest-revision.ts';
import { type CommandIdentity, RangeCalls, type RangeCallsDeps } from './range-calls.ts';
import { listSessions, showSession } from './session-lists.ts';
import { type ReadQuery, SnapshotRead } from './snapshot-read.ts';

export interface ManyRangesDeps extends RangeCallsDeps {
  readonly newest: NewestRevision;
}

interface RunTerms {
  readonly timeoutMs: number;
  readonly clearance: Clearance;
}

type Answer<Result> = Pick<RangeReply, 'revision' | 'raftTerm'> & { readonly result: Result };

const RANGES_AT_A_TIME = 8;
/** A range that does not report its status within this time is left out of sums. */
const STATUS_TIMEOUT_MS = 1_000;
const NOW_TIMEOUT_MS = 2_000;
const NOW_PAUSE_MS = 100;

/** Executes requests whose keys are in several ranges: asks range by range, and merges the answers. */
export class ManyRanges {
  readonly #deps: ManyRangesDeps;
  readonly #newest: NewestRevision;

  constructor(deps: ManyRangesDeps) {
    this.#deps = deps;
    this.#newest = deps.newest;
  }

  /**
   * The answer is not older than the revision `notBefore`, if that is above 0. Returns a function that cancels the
   * query.
   */
  query(
    query: Query,
    { notBefore, ...terms }: RunTerms & { readonly notBefore: number },
    done: BackendDone<QueryResult>,
  ): () => void {
    return this.#begin(terms, (run) => run.answer(query, notBefore), done);
  }

  /** Compacts all ranges (compaction.ts). Returns a function that ends the interest in the answer. */
  compact(
    revision: number,
    { timeoutMs, clearance, ...identity }: CommandIdentity & RunTerms,
    done: BackendDone<CommandResult>,
  ): () => void {
    return this.#begin({ timeoutMs, clearance }, (run) => run.compact(revision, identity), done);
  }

  #begin<Reply extends Answer<CommandResult | QueryResult>>(
    { timeoutMs, clearance }: RunTerms,
    work: (run: Run) => Promise<Reply>,
    done: (error: ServiceError | undefined, reply: Reply | undefined) => void,
  ): () => void {
    const over = new AbortController();
    const run = this.#run(over.signal, this.#deps.clock.monotonicMs() + timeoutMs, clearance);
    const timer = this.#deps.clock.setTimer(timeoutMs, () => over.abort(tooLate()));
    let canceled = false;
    const end = (error: ServiceError | undefined, reply: Reply | undefined): void => {
      timer.cancel();
      over.abort(gone()); // other parts may still be in flight after one has failed
      if (!canceled) done(error, reply);
    };
    work(run).then(
      (reply) => end(undefined, reply),
      (error: unknown) => end(toServiceError(error), undefined),
    );
    return () => {
      canceled = true;
      over.abort(gone());
    };
  }

  /**
   * Finds a revision of the span: every change acknowledged before the call is at or below it, and every change that is
   * not there when `done` is called gets a higher one. Asks until it has an answer, or until the caller gives up.
   */
  now(span: Span, done: (revision: number) => void): () => void {
    const over = new AbortController();
    const run = this.#run(over.signal, Number.POSITIVE_INFINITY, CLUSTER);
    run.closedNow(span).then(done, () => {}); // It rejects only after the caller has given up.
    return () => over.abort(gone());
  }

  #run(signal: AbortSignal, endsMs: number, clearance: Clearance): Run {
    return new Run(new RangeCalls(this.#deps, signal, endsMs, clearance), this.#newest);
  }
}

/** One request, until it is answered or has ended. */
class Run {
  readonly #calls: RangeCalls;
  readonly #newest: NewestRevision;

  constructor(calls: RangeCalls, newest: NewestRevision) {
    this.#calls = calls;
    this.#newest = newest;
  }

  async answer(query: Query, notBefore: number): Promise<Answer<QueryResult>> {
    if (query.type === 'range' || query.type === 'readTxn') return this.#read(query, notBefore);
    const { revision, ...answer } = await this.#answer(query);
    return { ...answer, revision: Math.max(revision, notBefore) };
  }

  #read(query: ReadQuery, notBefore: number): Promise<Answer<QueryResult>> {
    const read = new SnapshotRead({
      newest: this.#newest,
      routesOf: (span) => this.#calls.routesOf(span),
      ask: (part, span) => this.#calls.ask(part, span),
      pause: () => this.#calls.pause(),
      signal: this.#calls.signal,
    });
    return read.run(query, notBefore);
  }

  #answer(query: Exclude<Query, ReadQuery>): Promise<Answer<QueryResult>> {
    switch (query.type) {
      case 'leases':
        return this.#leases();
      case 'sessions':
      case 'session':
        return this.#sessions(query);
      case 'leaseTimeToLive':
        return this.#timeToLive(query);
      case 'status':
        return this.#status();
      case 'lock':
        return this.#locks(query.query);
      case 'scan':
        return this.#scan(query);
      default:
        throw new ServiceError('INTERNAL', `the query ${query.type} cannot be split over several ranges`);
    }
  }

  async compact(revision: number, identity: CommandIdentity): Promise<Answer<CommandResult>> {
    const newest = await this.now(PLAIN_KEYS);
    return { revision: newest, ...(await compactRanges(this.#calls, { revision, newest, identity })) };
  }

  now(span: Span): Promise<number> {
    return this.#patiently(() => this.#newestOf(span));
  }

  /** The same, once every range has closed the revision. Before that, a change in flight may still get a lower one. */
  closedNow(span: Span): Promise<number> {
    return this.#patiently(async () => {
      const revision = await this.#newestOf(span);
      await this.#askAll({ type: 'closedRevision', revision }, span);
      return revision;
    });
  }

  async #newestOf(span: Span): Promise<number> {
    const [route = span] = await this.#calls.routesOf(span);
    const { result } = await this.#calls.ask({ type: 'closedRevision', revision: 0 }, route, NOW_TIMEOUT_MS);
    return this.#newest.draw(result.type === 'closedRevision' ? result.floor : 0, this.#calls.signal);
  }

  /** Retries `work` until it succeeds or the caller gives up. */
  async #patiently<Result>(work: () => Promise<Result>): Promise<Result> {
    for (;;) {
      try {
        return await work();
      } catch (error) {
        this.#calls.signal.throwIfAborted();
        if (!(error instanceof ServiceError)) throw error;
        await this.#calls.pause(NOW_PAUSE_MS);
      }
    }
  }

  /** The answers of all ranges that have keys of the span, in the order of their keys. */
  async #askAll(query: Query, span: Span, timeoutMaxMs?: number): Promise<readonly RangeReply[]> {
    const routes = await this.#calls.routesOf(span);
    const replies: (readonly RangeReply[])[] = [];
    await eachOf([...routes.entries()], RANGES_AT_A_TIME, async ([i, route]) => {
      replies[i] = await this.#askPart(query, route, timeoutMaxMs);
    });
    return replies.flat();
  }

  async #askPart(query: Query, span: Span, timeoutMaxMs?: number): Promise<readonly RangeReply[]> {
    try {
      return [await this.#calls.ask(query, span, timeoutMaxMs)];
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      if (error.code === 'STALE_EPOCH') {
        await this.#calls.pause();
        return this.#askAll(query, span, timeoutMaxMs);
      }
      if (timeoutMaxMs !== undefined && error.code === 'DEADLINE_EXCEEDED') return [];
      throw error;
    }
  }

  async #leases(): Promise<Answer<QueryResult>> {
    const replies = await this.#askAll({ type: 'leases' }, LEASES);
    const ids = new Set(replies.flatMap(({ result }) => (result.type === 'leases' ? result.ids : [])));
    return { ...newestOf(replies), result: { type: 'leases', ids: [...ids] } };
  }

  async #sessions(query: SessionQuery): Promise<Answer<QueryResult>> {
    const { replies, result } =
      query.type === 'sessions'
        ? await listSessions(query, this.#calls)
        : await showSession(
            query,
            (part, span) => this.#calls.ask(part, span),
            (part) => this.#askAll(part, LOCKS),
          );
    return { ...newestOf(replies), result };
  }

  /** Scans the first range only. It closes the revision first, which is one at which the whole span can be read. */
  async #scan(query: Extract<Query, { type: 'scan' }>): Promise<Answer<QueryResult>> {
    const start = routingKey(query);
    const span = { start, end: keyAfter(start) };
    const revision = await this.#revisionOf(query);
    await this.#calls.ask({ type: 'closedRevision', revision }, span);
    const { result, raftTerm } = await this.#calls.ask({ ...query, revision }, span);
    if (result.type !== 'scan') throw new ServiceError('INTERNAL', `a range answered a scan with ${result.type}`);
    return { revision, raftTerm, result };
  }

  /** A revision that the master has not issued must not be closed: the next write of the range would be below it. */
  async #revisionOf(query: Extract<Query, { type: 'scan' }>): Promise<number> {
    const { revision } = query;
    if (revision > 0 && this.#newest.wasGiven(revision)) return revision;
    const newest = await this.now(keysSpan(query));
    if (revision <= newest) return revision === 0 ? newest : revision;
    const message = `revision ${revision} is in the future; the newest is ${newest}`;
    throw new ServiceError('FUTURE_REVISION', message, { details: { revision: newest } });
  }

  /** The sums over all ranges, with the replicas of the first. */
  async #status(): Promise<Answer<QueryResult>> {
    const everything = routingSpan({ type: 'status' }) ?? LEASES;
    const replies = await this.#askAll({ type: 'status' }, everything, STATUS_TIMEOUT_MS);
    const [first, ...others] = replies.flatMap(({ result }) => (result.type === 'status' ? [result.status] : []));
    if (first === undefined) throw new ServiceError('UNAVAILABLE', 'no range has answered');
    return { ...newestOf(replies), result: { type: 'status', status: others.reduce(summed, first) } };
  }

  /** Versions of locks in several ranges are compared one by one, not all at the same moment. */
  async #locks(query: Extract<Query, { type: 'lock' }>['query']): Promise<Answer<QueryResult>> {
    if (query.type !== 'check' && query.type !== 'show') return this.#listLocks(query);
    if (query.type === 'show')
      throw new ServiceError('INTERNAL', 'the query of one lock cannot be split over several ranges');
    const replies: RangeReply[] = [];
    await eachOf([...query.checks.entries()], RANGES_AT_A_TIME, async ([i, check]) => {
      const one: Query = { type: 'lock', query: { type: 'check', checks: [check] } };
      replies[i] = await this.#calls.ask(one, lockSpan(check.lock));
    });
    const current = replies.map(
      ({ result }) => result.type === 'lock' && result.result.type === 'check' && result.result.current[0] === true,
    );
    return { ...newestOf(replies), result: { type: 'lock', result: { type: 'check', current } } };
  }

  async #listLocks(query: LockListQuery): Promise<Answer<QueryResult>> {
    const { replies, result } = await listLocks(query, this.#calls);
    return { ...newestOf(replies), result: { type: 'lock', result } };
  }

  /**
   * The answer of the lease's home, with the lease's keys in other ranges; each range answers for a moment of its own.
   */
  async #timeToLive(query: Extract<Query, { type: 'leaseTimeToLive' }>): Promise<Answer<QueryResult>> {
    const start = routingKey(query);
    const { result, ...reply } = await this.#calls.ask(query, { start, end: keyAfter(start) });
    if (result.type !== 'leaseTimeToLive')
      throw new ServiceError('INTERNAL', `a range answered with ${result.type}, which does not fit the request`);
    const { id, incarnation, remainingMs } = result.lease;
    if (remainingMs < 0) return { ...reply, result };
    const others = await this.#askAll({ type: 'leaseKeys', id, incarnation }, PLAIN_KEYS);
    const found = [
      result.lease.keys,
      ...others.map((other) => (other.result.type === 'leaseKeys' ? other.result.keys : [])),
    ];
    // A range asked before a split, and its child asked after it, both return the same key.
    const keys = new Map(found.flat().map((key) => [binaryString(key), key]));
    const lease = { ...result.lease, keys: [...keys.values()].sort(compareBytes) };
    return { ...newestOf([{ ...reply, result }, ...others]), result: { type: 'leaseTimeToLive', lease } };
  }
}

function newestOf(replies: readonly RangeReply[]): Pick<RangeReply, 'revision' | 'raftTerm'> {
  return {
    revision: replies.reduce((highest, { revision }) => Math.max(highest, revision), 0),
    raftTerm: replies.reduce((highest, { raftTerm }) => Math.max(highest, raftTerm), 0),
  };
}

function summed(a: RangeStatus, b: RangeStatus): RangeStatus {
  return {
    ...a,
    term: Math.max(a.term, b.term),
    commit: a.commit + b.commit,
    applied: a.applied + b.applied,
    revision: Math.max(a.revision, b.revision),
    compactRevision: Math.max(a.compactRevision, b.compactRevision),
    bytes: a.bytes + b.bytes,
    keys: a.keys + b.keys,
    leases: a.leases + b.leases,
    watches: a.watches + b.watches,
  };
}

function tooLate(): ServiceError {
  return new ServiceError('DEADLINE_EXCEEDED', 'not all ranges answered in time');
}

function gone(): ServiceError {
  return new ServiceError('CANCELED', 'the caller has given up');
}
