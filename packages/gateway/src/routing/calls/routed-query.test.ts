import { SeededRandom, ServiceError, silentLogger, utf8 } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import {
  type ClusterView,
  type Query,
  type RangeDescriptor,
  type RangeReply,
  type RangeRequest,
  type RpcChannel,
  type RpcDialer,
  rangeOp,
  staleEpoch,
} from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import type { RequestOptions } from '../../backend.ts';
import type { DrawNewest } from './newest-revision.ts';
import { RangeBackend } from './range-backend.ts';

type Done = (error: ServiceError | undefined, reply: RangeReply | undefined) => void;

const SEARCH_MS = 50;
const NO_KEY = new Uint8Array(0);
const BORDER = Buffer.from([3, 'm'.charCodeAt(0)]);
/** Some leases are before it, some behind. */
const LEASE_BORDER = Buffer.from([1, 128]);

function range(rangeId: number, version: number, more: Partial<RangeDescriptor>): RangeDescriptor {
  return {
    ...{ rangeId, start: NO_KEY, end: NO_KEY, epoch: { confVersion: 1, version } },
    replicas: [{ replicaId: 10 + rangeId, nodeId: 1, type: 'voter' }],
    revisionSource: 'master',
    ...more,
  };
}

const NEVER_SPLIT = [range(2, 1, { revisionSource: 'range' })];
const SPLIT = [range(2, 2, { end: BORDER }), range(3, 2, { start: BORDER })];

/** A gateway before ranges of which each answers at revision 5, and a master that answers when the test says so. */
class QueryBed {
  readonly clock = new ManualClock();
  /** What the ranges were asked: by id, and no earlier than. */
  readonly asked: string[] = [];
  readonly questions: Parameters<DrawNewest>[1][] = [];
  readonly answers: string[] = [];
  readonly #backend: RangeBackend;

  /** `known`: what the gateway takes for the ranges that there are. */
  constructor(known: readonly RangeDescriptor[], real = known) {
    const leaders = known.map(({ rangeId }) => [rangeId, 1] as const);
    const view: ClusterView = { clusterId: 'c', nodes: [], ranges: known, leaders, masterLeader: 0 };
    this.#backend = new RangeBackend({
      nodeId: 1,
      dialer: this.#dialer(real),
      view: () => view,
      master: { draw: () => {}, newest: (_floor, done) => this.questions.push(done), view: () => {} },
      ...{ clock: this.clock, random: new SeededRandom(1), logger: silentLogger },
    });
  }

  #dialer(ranges: readonly RangeDescriptor[]): RpcDialer {
    const call = (method: { readonly name: string }, request: RangeRequest, _options: object, done: Done) => {
      const answered = { rangeId: request.rangeId, leaderNode: 1, rangeTimeMs: 5_000, revision: 5, term: 1 };
      const { body } = request;
      const now = ranges.find(({ rangeId }) => rangeId === request.rangeId);
      if (method.name !== 'range.execute') done(undefined, answered as never);
      else if (now?.epoch.version !== request.epoch.version) done(staleEpoch(ranges), undefined);
      else if (body.kind === 'query') {
        this.asked.push(`${request.rangeId} from ${body.notBefore}`);
        const kvs = { type: 'range', kvs: [], more: false, count: 0 } as const;
        const leases = { type: 'leases', ids: [] } as const;
        const closed = { type: 'closedRevision', closed: 5, floor: 5 } as const;
        const { type } = body.query;
        const result = type === 'range' ? kvs : type === 'closedRevision' ? closed : leases;
        done(undefined, { revision: Math.max(5, body.notBefore), raftTerm: 1, rangeTimeMs: 5_000, result });
      }
      return { cancel() {} };
    };
    return { channel: () => ({ call }) as unknown as RpcChannel } as unknown as RpcDialer;
  }

  /** Returns behind the moment in which the gateway finds a leader. */
  query(query: Query, options: Partial<RequestOptions> = {}): () => void {
    const cancel = this.#backend.query(query, { timeoutMs: 1_000, ...options }, (error, reply) => {
      this.answers.push(error?.code ?? `${reply?.revision}`);
    });
    this.clock.advance(SEARCH_MS);
    return cancel;
  }

  read(options: Partial<RequestOptions> & { readonly serializable?: boolean } = {}): () => void {
    const { serializable = false, ...others } = options;
    return this.query({ type: 'range', op: rangeOp({ key: utf8('a') }), serializable }, others);
  }

  async compact(revision: number): Promise<void> {
    this.#backend.command({ type: 'compact', revision }, { timeoutMs: 1_000 }, () => {});
    for (let i = 0; i < 20; i++) {
      await Promise.resolve();
      this.clock.advance(1);
    }
  }

  give(revision: number): void {
    for (const done of this.questions.splice(0)) done(undefined, revision);
    this.clock.advance(SEARCH_MS);
  }
}

describe('the revision of an answer (RQ1)', () => {
  test('is at least the newest that the master gave after the query came', () => {
    const bed = new QueryBed(SPLIT);
    bed.read();
    expect([bed.questions.length, bed.asked]).toEqual([1, []]);
    bed.give(9);
    expect([bed.asked, bed.answers]).toEqual([['2 from 9'], ['9']]);
  });

  test('is that of the range where there never was another: the master is not asked', () => {
    const bed = new QueryBed(NEVER_SPLIT);
    bed.read();
    bed.query({ type: 'leases' }, { current: true });
    expect([bed.questions.length, bed.asked, bed.answers]).toEqual([0, ['2 from 0', '2 from 0'], ['5', '5']]);
  });

  test('of a range that has become the only one again is the newest as well', () => {
    const bed = new QueryBed([range(2, 3, {})]);
    bed.read();
    bed.give(9);
    expect(bed.answers).toEqual(['9']);
  });

  test('of a master that has given none yet is that of the range', () => {
    const bed = new QueryBed(SPLIT);
    bed.read();
    bed.give(0);
    expect([bed.asked, bed.answers]).toEqual([['2 from 1'], ['5']]);
  });

  test('is the newest for other queries that ask for it', () => {
    const bed = new QueryBed(SPLIT);
    bed.query({ type: 'leases' }, { current: true });
    bed.query({ type: 'leases' });
    bed.give(9);
    expect(bed.answers).toEqual(['5', '9']);
  });

  test('is for a serializable read what its client has seen, without a question', () => {
    const bed = new QueryBed(SPLIT);
    bed.read({ serializable: true, notBefore: 7 });
    bed.read({ serializable: true });
    expect([bed.questions.length, bed.asked, bed.answers]).toEqual([0, ['2 from 7', '2 from 0'], ['7', '5']]);
  });
});

test('what turns out to be in several ranges carries the newest revision too (RQ2)', () => {
  const bed = new QueryBed(NEVER_SPLIT, [range(2, 2, { end: LEASE_BORDER }), range(3, 2, { start: LEASE_BORDER })]);
  bed.query({ type: 'leases' }, { current: true });
  expect([bed.asked, bed.questions.length]).toEqual([[], 1]);
});

test('a compaction asks for the newest revision also of a range that has become the only one again', async () => {
  const bed = new QueryBed([range(2, 3, {})]);
  await bed.compact(3);
  expect(bed.questions.length).toBe(1);
  const unsplit = new QueryBed(NEVER_SPLIT);
  await unsplit.compact(3);
  expect(unsplit.questions.length).toBe(0);
});

test('a range that was split since the gateway heard of it shows that the master has to be asked (RQ2)', () => {
  const bed = new QueryBed(NEVER_SPLIT, SPLIT);
  bed.read();
  expect([bed.asked, bed.answers]).toEqual([['2 from 0'], []]);
  bed.give(9);
  expect([bed.asked.slice(1), bed.answers]).toEqual([['2 from 9'], ['9']]);
});

describe('while the master does not answer (RQ3)', () => {
  test('a read ends at its deadline, and not before', () => {
    const bed = new QueryBed(SPLIT);
    bed.read();
    bed.clock.advance(1_000 - SEARCH_MS - 1);
    expect(bed.answers).toEqual([]);
    bed.clock.advance(1);
    expect(bed.answers).toEqual(['DEADLINE_EXCEEDED']);
    bed.give(9);
    expect([bed.asked, bed.answers.length]).toEqual([[], 1]);
  });

  test('a read asks again after an error that may pass', () => {
    const bed = new QueryBed(SPLIT);
    bed.read();
    bed.questions.shift()?.(new ServiceError('UNAVAILABLE', 'nobody leads'), undefined);
    bed.clock.advance(100);
    bed.give(9);
    expect(bed.answers).toEqual(['9']);
  });

  test('a read that is taken back is not answered, and asks no more', () => {
    const bed = new QueryBed(SPLIT);
    bed.read()();
    bed.questions.shift()?.(new ServiceError('UNAVAILABLE', 'nobody leads'), undefined);
    bed.clock.advance(5_000);
    expect([bed.questions.length, bed.asked, bed.answers]).toEqual([0, [], []]);
  });
});
