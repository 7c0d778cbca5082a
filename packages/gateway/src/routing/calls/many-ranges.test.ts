import { SeededRandom, ServiceError, type Span } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import {
  type ClusterView,
  type Command,
  type CommandResult,
  kvRoutingKey,
  type Query,
  type QueryResult,
  type RangeDescriptor,
  type RangeStatus,
} from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { CLUSTER } from '../../authorisation/clearance.ts';
import type { BackendReply } from '../../backend.ts';
import { Routes } from '../routes/routes.ts';
import { ManyRanges } from './many-ranges.ts';
import { NewestRevision } from './newest-revision.ts';
import type { AskDone } from './range-calls.ts';
import { REQUEST_TIMEOUT_MAX_MS } from './routed-query.ts';

const NONE = new Uint8Array(0);
const BORDERS = [Buffer.from([1, 128]), kvRoutingKey(Buffer.from('m'))];
/** Leases are in two of them, plain keys in two, and the second has all locks. */
const RANGES: readonly RangeDescriptor[] = [NONE, ...BORDERS].map((start, i) => ({
  ...{ rangeId: 2 + i, start, end: BORDERS[i] ?? NONE, replicas: [], revisionSource: 'master' },
  epoch: { confVersion: 1, version: 1 },
}));
const STATUS: RangeStatus = {
  ...{ rangeId: 0, leaderNode: 1, term: 4, commit: 10, applied: 9, revision: 50, compactRevision: 3 },
  ...{ bytes: 100, keys: 5, leases: 1, watches: 2, replicas: [] },
};

type Asked = Query | (Command & { readonly requestId: string });

/** Ranges that answer as the test says, in a moment; 'silence' never. */
class ManyBed {
  readonly clock = new ManualClock();
  readonly asked: string[] = [];
  outcome: string | undefined;
  result: QueryResult | CommandResult | undefined;
  revision = 0;
  answer: (asked: Asked, rangeId: number) => QueryResult | CommandResult | ServiceError | 'silence' = () => 'silence';
  readonly #view: ClusterView = { clusterId: 'c', nodes: [], ranges: RANGES, leaders: [], masterLeader: 0 };
  readonly #routes = new Routes(this.clock, () => this.#view);
  readonly #many = new ManyRanges({
    ...{ routes: this.#routes, clock: this.clock },
    newest: new NewestRevision({
      ...{ clock: this.clock, random: new SeededRandom(1) },
      newest: (_floor, done) => done(undefined, 77),
    }),
    ask: (query, span, { timeoutMs }, done) => this.#ask(query, span, timeoutMs, done),
    execute: (build, span, { requestId, timeoutMs }, done) =>
      this.#ask({ ...build(0, 0), requestId }, span, timeoutMs, done),
  });

  #ask(asked: Asked, span: Span, timeoutMs: number, done: AskDone): () => void {
    const rangeId = this.#routes.find(span.start)?.rangeId ?? 0;
    this.asked.push(`${asked.type} ${rangeId}`);
    const answer = this.answer(asked, rangeId);
    const late = answer === 'silence';
    const timer = this.clock.setTimer(late ? Math.min(timeoutMs, REQUEST_TIMEOUT_MAX_MS) : 1, () => {
      if (late) done(new ServiceError('DEADLINE_EXCEEDED', 'late'), undefined);
      else if (answer instanceof ServiceError) done(answer, undefined);
      else done(undefined, { revision: 40 + rangeId, raftTerm: rangeId, rangeTimeMs: 0, result: answer });
    });
    return () => timer.cancel();
  }

  async query(query: Query, ms = 3_000): Promise<void> {
    const terms = { notBefore: 0, timeoutMs: 2_000, clearance: CLUSTER };
    this.#many.query(query, terms, (error, reply) => this.#answered(error, reply));
    await this.pass(ms);
  }

  /** Gives the revisions that it was told, as they come. */
  async now(span: Span, ms: number): Promise<readonly number[]> {
    const told: number[] = [];
    this.#many.now(span, (revision) => told.push(revision));
    await this.pass(ms);
    return told;
  }

  async compact(revision: number): Promise<void> {
    const options = { requestId: 'c', deadlineMs: 9_000, timeoutMs: 2_000, clearance: CLUSTER };
    this.#many.compact(revision, options, (error, reply) => this.#answered(error, reply));
    await this.pass(3_000);
  }

  #answered(error: ServiceError | undefined, reply: BackendReply<QueryResult | CommandResult> | undefined): void {
    expect(this.outcome).toBeUndefined();
    this.outcome = error?.code ?? 'ok';
    this.result = reply?.result;
    this.revision = reply?.revision ?? 0;
  }

  async pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += 50) {
      for (let turn = 0; turn < 20; turn++) await Promise.resolve();
      this.clock.advance(50);
    }
  }
}

test('leases are those of all ranges that may have any, each once', async () => {
  const bed = new ManyBed();
  bed.answer = (_query, rangeId) => ({ type: 'leases', ids: [BigInt(rangeId), 9n] });
  await bed.query({ type: 'leases' });
  expect([bed.outcome, bed.result]).toEqual(['ok', { type: 'leases', ids: [2n, 9n, 3n] }]);
  expect(bed.asked).toEqual(['leases 2', 'leases 3']);
});

test('the status sums up what there is, and leaves out a range that says nothing', async () => {
  const bed = new ManyBed();
  bed.answer = (_query, rangeId) =>
    rangeId === 3 ? 'silence' : { type: 'status', status: { ...STATUS, rangeId, revision: 50 + rangeId } };
  await bed.query({ type: 'status' });
  expect(bed.result).toEqual({
    type: 'status',
    status: {
      ...{ ...STATUS, rangeId: 2, commit: 20, applied: 18, revision: 54 },
      ...{ bytes: 200, keys: 10, leases: 2, watches: 4 },
    },
  });
});

test('versions of locks are compared each where it is', async () => {
  const bed = new ManyBed();
  bed.answer = (query) => {
    if (query.type !== 'lock' || 'requestId' in query || query.query.type !== 'check')
      return new ServiceError('INTERNAL', '');
    return { type: 'lock', result: { type: 'check', current: query.query.checks.map(({ version }) => version === 5) } };
  };
  const checks = [5, 6, 5].map((version) => ({ lock: { namespace: 'n', name: Buffer.from('l') }, version }));
  await bed.query({ type: 'lock', query: { type: 'check', checks } });
  expect(bed.result).toEqual({ type: 'lock', result: { type: 'check', current: [true, false, true] } });
});

test('locks are listed range by range, and a range that is not what it was is looked for again', async () => {
  const bed = new ManyBed();
  const query = { type: 'list', namespace: 'n', prefix: NONE, after: NONE, limit: 10 } as const;
  let stale = true;
  bed.answer = () => {
    if (!stale) return { type: 'lock', result: { type: 'list', locks: [], more: false } };
    stale = false;
    return new ServiceError('STALE_EPOCH', 'split');
  };
  await bed.query({ type: 'lock', query });
  expect([bed.outcome, bed.result]).toEqual(['ok', { type: 'lock', result: { type: 'list', locks: [], more: false } }]);
  expect(bed.asked).toEqual(['lock 3', 'lock 3']);
});

test('an answer that one range owes ends with the time-out, and leaves nothing behind', async () => {
  const bed = new ManyBed();
  bed.answer = (_query, rangeId) => (rangeId === 3 ? 'silence' : { type: 'leases', ids: [] });
  await bed.query({ type: 'leases' });
  expect([bed.outcome, bed.clock.pendingTimers]).toEqual(['DEADLINE_EXCEEDED', 0]);
});

test('a range that refuses ends it at once', async () => {
  const bed = new ManyBed();
  bed.answer = (_query, rangeId) => (rangeId === 3 ? new ServiceError('RESOURCE_EXHAUSTED', '') : 'silence');
  await bed.query({ type: 'leases' }, 100);
  expect([bed.outcome, bed.clock.pendingTimers]).toEqual(['RESOURCE_EXHAUSTED', 0]);
});

test('a range that was split since is asked again in parts', async () => {
  const bed = new ManyBed();
  let first = true;
  bed.answer = (_query, rangeId) => {
    if (rangeId === 2 && first) {
      first = false;
      return new ServiceError('STALE_EPOCH', '');
    }
    return { type: 'leases', ids: [BigInt(rangeId)] };
  };
  await bed.query({ type: 'leases' });
  expect([bed.outcome, bed.asked]).toEqual(['ok', ['leases 2', 'leases 3', 'leases 2']]);
});

test('the keys of a lease are those of all ranges, in order, each once', async () => {
  const bed = new ManyBed();
  const lease = { id: 7n, incarnation: 4, grantedTtlMs: 900, remainingMs: 500, attributes: {}, endsEmpty: false };
  const key = (text: string) => Buffer.from(text);
  bed.answer = (query, rangeId) => {
    if (query.type === 'leaseTimeToLive') return { type: query.type, lease: { ...lease, keys: [key('n')] } };
    expect(query).toEqual({ type: 'leaseKeys', id: 7n, incarnation: 4 });
    return { type: 'leaseKeys', keys: rangeId === 3 ? [key('c'), key('a')] : [key('n'), key('z')] };
  };
  await bed.query({ type: 'leaseTimeToLive', id: 7n, keys: true });
  const keys = ['a', 'c', 'n', 'z'].map(key);
  expect(bed.result).toEqual({ type: 'leaseTimeToLive', lease: { ...lease, keys } });
  expect(bed.asked).toEqual(['leaseTimeToLive 2', 'leaseKeys 3', 'leaseKeys 4']);
});

test('nobody is asked for the keys of a lease that is gone', async () => {
  const bed = new ManyBed();
  const lease = {
    id: 7n,
    incarnation: 0,
    grantedTtlMs: 0,
    remainingMs: -1,
    attributes: {},
    keys: [],
    endsEmpty: false,
  };
  bed.answer = () => ({ type: 'leaseTimeToLive', lease });
  await bed.query({ type: 'leaseTimeToLive', id: 7n, keys: true });
  expect([bed.result, bed.asked]).toEqual([{ type: 'leaseTimeToLive', lease }, ['leaseTimeToLive 2']]);
});

describe('sessions', () => {
  const info = (id: bigint) => ({ id, incarnation: 4, ttlMs: 900, remainingMs: 500, attributes: {} });
  const list = { type: 'sessions', after: 0n, limit: 3, attributes: {}, endsEmpty: false } as const;

  test('are listed range by range, until there are as many as were asked for', async () => {
    const bed = new ManyBed();
    const limits: number[] = [];
    bed.answer = (query, rangeId) => {
      if (query.type !== 'sessions') throw new Error('sessions are listed');
      limits.push(query.limit);
      if (rangeId === 2) return { type: 'sessions', sessions: [1n, 2n].map(info), next: 0n };
      return { type: 'sessions', sessions: [info(-1n)], next: -1n };
    };
    await bed.query(list);
    expect(bed.result).toEqual({ type: 'sessions', sessions: [1n, 2n, -1n].map(info), next: -1n });
    expect([bed.asked, limits]).toEqual([
      ['sessions 2', 'sessions 3'],
      [3, 1],
    ]);
  });

  test('are listed from behind one of them, and what a range has not looked at yet is not passed over', async () => {
    const bed = new ManyBed();
    bed.answer = () => ({ type: 'sessions', sessions: [], next: 5n });
    await bed.query({ ...list, after: 2n });
    expect([bed.result, bed.asked]).toEqual([{ type: 'sessions', sessions: [], next: 5n }, ['sessions 2']]);
    const behind = new ManyBed();
    behind.answer = () => ({ type: 'sessions', sessions: [info(-1n)], next: 0n });
    await behind.query({ ...list, after: -2n });
    expect([behind.result, behind.asked]).toMatchObject([{ sessions: [info(-1n)], next: 0n }, ['sessions 3']]);
  });

  test('are listed once each by a range that others were merged into meanwhile, which is asked in their place', async () => {
    const bed = new ManyBed();
    bed.answer = (query) => {
      if (query.type !== 'sessions') throw new Error('sessions are listed');
      const { after } = query;
      const found = after === 0n ? [1n, -1n] : after === 1n ? [-1n] : [];
      return { type: 'sessions', sessions: found.map(info), next: 0n };
    };
    await bed.query(list);
    expect(bed.result).toEqual({ type: 'sessions', sessions: [1n, -1n].map(info), next: 0n });
  });

  test('are shown with the locks that all ranges have of them, each once', async () => {
    const bed = new ManyBed();
    const at = (name: string) => ({
      lock: { namespace: 'n', name: Buffer.from(name) },
      ...({ ownerId: 't', mode: 'exclusive', permits: 0, version: 3, depth: 1, position: 0, sinceMs: 9 } as const),
    });
    bed.answer = (query, rangeId) => {
      if (rangeId === 2) return { type: 'session', session: info(7n), locks: [at('a')], more: false };
      expect(query).toEqual({ type: 'session', id: 7n, incarnation: 4 });
      return { type: 'session', session: undefined, locks: [at('a'), at('b')], more: true };
    };
    await bed.query({ type: 'session', id: 7n, incarnation: 0 });
    const locks = [at('a'), at('b')];
    expect(bed.result).toEqual({ type: 'session', session: info(7n), locks, more: true });
    expect(bed.asked).toEqual(['session 2', 'session 3']);
  });

  test('that are gone are not looked for in other ranges', async () => {
    const bed = new ManyBed();
    bed.answer = () => ({ type: 'session', session: undefined, locks: [], more: false });
    await bed.query({ type: 'session', id: 7n, incarnation: 0 });
    expect([bed.outcome, bed.asked]).toEqual(['ok', ['session 2']]);
  });
});

describe('a compaction', () => {
  const closed: QueryResult = { type: 'closedRevision', closed: 0, floor: 0 };
  const compacted = (compactRevision: number) =>
    new ServiceError('COMPACTED', 'it is compacted', { details: { compactRevision } });

  test('concerns all ranges with plain keys, under one request id', async () => {
    const bed = new ManyBed();
    const ids = new Set<string>();
    bed.answer = (asked) => {
      if ('requestId' in asked) ids.add(asked.requestId);
      return asked.type === 'closedRevision' ? closed : { type: 'compact' };
    };
    await bed.compact(70);
    expect([bed.outcome, bed.result, bed.revision]).toEqual(['ok', { type: 'compact' }, 77]);
    expect(bed.asked).toEqual(['closedRevision 3', 'compact 3', 'compact 4']);
    expect([...ids]).toEqual(['c']);
  });

  test('in the future is refused, and no range is compacted', async () => {
    const bed = new ManyBed();
    bed.answer = () => closed;
    await bed.compact(78);
    expect([bed.outcome, bed.asked]).toEqual(['FUTURE_REVISION', ['closedRevision 3']]);
  });

  test.each([
    { name: 'is done when some range had been compacted', had: [3], expect: 'ok' },
    { name: 'is refused when all had', had: [3, 4], expect: 'COMPACTED' },
  ])('$name', async ({ had, expect: wanted }) => {
    const bed = new ManyBed();
    bed.answer = ({ type }, rangeId) => {
      if (type === 'closedRevision') return closed;
      return had.includes(rangeId) ? compacted(70 + rangeId) : { type: 'compact' };
    };
    await bed.compact(70);
    expect(bed.outcome).toBe(wanted);
  });

  test.each([
    { name: 'that a range does not answer', answer: 'silence' as const },
    { name: 'that a range refuses', answer: new ServiceError('RESOURCE_EXHAUSTED', 'its queue is full') },
  ])('$name is not known to have failed', async ({ answer }) => {
    const bed = new ManyBed();
    bed.answer = ({ type }, rangeId) =>
      type === 'closedRevision' ? closed : rangeId === 3 ? { type: 'compact' } : answer;
    await bed.compact(70);
    expect([bed.outcome, bed.clock.pendingTimers]).toEqual(['UNKNOWN_OUTCOME', 0]);
  });

  test('of which no range was told has failed', async () => {
    const bed = new ManyBed();
    bed.answer = () => 'silence';
    await bed.compact(70);
    expect(bed.asked.filter((asked) => asked.startsWith('compact'))).toEqual([]);
    expect([bed.outcome, bed.clock.pendingTimers]).toEqual(['DEADLINE_EXCEEDED', 0]);
  });

  test('goes on with the parts of a range that was split since', async () => {
    const bed = new ManyBed();
    let first = true;
    bed.answer = ({ type }, rangeId) => {
      if (type === 'closedRevision') return closed;
      const split = first && rangeId === 4;
      if (split) first = false;
      return split ? new ServiceError('STALE_EPOCH', '') : { type: 'compact' };
    };
    await bed.compact(70);
    expect([bed.outcome, bed.asked.slice(1)]).toEqual(['ok', ['compact 3', 'compact 4', 'compact 4']]);
  });
});

describe('a page of a span over several ranges', () => {
  const SCAN = { type: 'scan', key: Buffer.from('c'), end: Buffer.from('z'), bytes: 100 } as const;
  const page = { type: 'scan', kvs: [], next: Buffer.from('m') } as const;

  test('is as of a revision that holds in all of them, is told of it, and asks no more than its range', async () => {
    const bed = new ManyBed();
    const scanned: unknown[] = [];
    bed.answer = (query) => {
      if (query.type === 'closedRevision') return { type: 'closedRevision', closed: query.revision, floor: 5 };
      if ('requestId' in query || query.type !== 'scan') return new ServiceError('INTERNAL', query.type);
      scanned.push(query.revision);
      return page;
    };
    await bed.query({ ...SCAN, revision: 0 });
    expect([bed.outcome, bed.result, bed.revision]).toEqual(['ok', page, 77]);
    expect(scanned).toEqual([77]);
    expect(new Set(bed.asked)).toEqual(new Set(['closedRevision 3', 'scan 3']));
  });

  test('is as of the revision that it names, of which the master is asked once whether it was given out', async () => {
    const bed = new ManyBed();
    bed.answer = (query) =>
      query.type === 'closedRevision' ? { type: 'closedRevision', closed: query.revision, floor: 5 } : page;
    await bed.query({ ...SCAN, revision: 60 });
    expect([bed.outcome, bed.revision]).toEqual(['ok', 60]);
    bed.asked.length = 0;
    bed.outcome = undefined;
    await bed.query({ ...SCAN, revision: 60 });
    expect([bed.outcome, bed.asked]).toEqual(['ok', ['closedRevision 3', 'scan 3']]);
  });
});

describe('a revision to watch behind', () => {
  const PLAIN: Span = { start: kvRoutingKey(Buffer.of()), end: Buffer.from([4]) };
  const closed = (revision: number): QueryResult => ({ type: 'closedRevision', closed: revision, floor: 0 });

  test('is told once all ranges have closed it, so that nothing that is on its way comes below it (MW4)', async () => {
    const bed = new ManyBed();
    let late = true;
    bed.answer = (query, rangeId) => {
      if (query.type !== 'closedRevision') return new ServiceError('INTERNAL', '');
      return query.revision > 0 && rangeId === 4 && late ? 'silence' : closed(query.revision);
    };
    const told = await bed.now(PLAIN, 70_000);
    expect([told, new Set(bed.asked)]).toEqual([[], new Set(['closedRevision 3', 'closedRevision 4'])]);
    late = false;
    await bed.pass(70_000);
    expect(told).toEqual([77]);
  });

  test('is asked for of the parts of a range that was split meanwhile', async () => {
    const bed = new ManyBed();
    let split = false;
    bed.answer = (query, rangeId) => {
      if (query.type !== 'closedRevision') return new ServiceError('INTERNAL', '');
      if (query.revision === 0 || rangeId !== 4 || split) return closed(query.revision);
      split = true;
      return new ServiceError('STALE_EPOCH', 'split');
    };
    expect(await bed.now(PLAIN, 1_000)).toEqual([77]);
    expect(bed.asked.filter((one) => one === 'closedRevision 4')).toHaveLength(2);
  });
});

describe('a scan that names a revision', () => {
  const scan = (revision: number): Query => ({
    ...{ type: 'scan', key: Buffer.from('a'), end: Buffer.from('b'), revision, bytes: 1_000 },
  });

  test('has it closed by the range', async () => {
    const bed = new ManyBed();
    bed.answer = ({ type }) =>
      type === 'scan' ? { type, kvs: [], next: undefined } : { type: 'closedRevision', closed: 77, floor: 0 };
    await bed.query(scan(77));
    expect([bed.outcome, bed.asked.at(-1)]).toEqual(['ok', 'scan 3']);
  });

  test('is refused when nobody was given it, and no range closes it', async () => {
    const bed = new ManyBed();
    const closed: number[] = [];
    bed.answer = (query) => {
      if (query.type === 'closedRevision') closed.push(query.revision);
      return { type: 'closedRevision', closed: 77, floor: 0 };
    };
    await bed.query(scan(78));
    expect([bed.outcome, closed]).toEqual(['FUTURE_REVISION', [0]]);
  });
});
