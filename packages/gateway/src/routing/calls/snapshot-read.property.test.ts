import { ServiceError, spanCovers } from '@remora/base';
import {
  compareHolds,
  isKeyCompare,
  type KeyCompare,
  type KeyValue,
  type KvOp,
  kvRoutingKey,
  type Query,
  type RangeDescriptor,
  type RangeOp,
  type RangeReply,
  type RangeResult,
  rangeOp,
  shapeRange,
  staleEpoch,
} from '@remora/protocol';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { keysSpan } from '../routes/request-keys.ts';
import { RouteMap } from '../routes/route-map.ts';
import type { NewestRevision } from './newest-revision.ts';
import { SnapshotRead } from './snapshot-read.ts';

const KEYS = 'abcdefghij';
const bytes = (text: string): Buffer => Buffer.from(text);

interface World {
  /** Where ranges begin, other than the first; more of them after so many questions. */
  readonly borders: readonly string[];
  readonly later: readonly { readonly border: string; readonly afterAsks: number }[];
  readonly kvs: readonly KeyValue[];
  /** What the master says first, and what ranges have counted by themselves. */
  readonly newest: number;
  readonly floor: number;
}

const pairs: fc.Arbitrary<readonly KeyValue[]> = fc
  .uniqueArray(fc.constantFrom(...KEYS), { maxLength: KEYS.length })
  .chain((keys) =>
    fc.tuple(
      ...keys.toSorted().map((key) =>
        fc.record({
          key: fc.constant(bytes(key)),
          value: fc.constantFrom('x', 'y', 'z').map(bytes),
          createRevision: fc.integer({ min: 1, max: 3 }),
          modRevision: fc.integer({ min: 3, max: 6 }),
          version: fc.integer({ min: 1, max: 3 }),
          lease: fc.constant(0n),
        }),
      ),
    ),
  );

const worlds: fc.Arbitrary<World> = fc.record({
  borders: fc.subarray([...KEYS].slice(1)),
  later: fc.array(fc.record({ border: fc.constantFrom(...KEYS.slice(1)), afterAsks: fc.nat(8) }), { maxLength: 3 }),
  kvs: pairs,
  newest: fc.constantFrom(3, 10),
  floor: fc.constantFrom(0, 8),
});

const reads: fc.Arbitrary<RangeOp> = fc
  .record({
    type: fc.constant('range' as const),
    key: fc.constantFrom(...KEYS).map(bytes),
    end: fc.option(fc.constantFrom('', ...KEYS).map(bytes), { nil: undefined }),
    limit: fc.nat(4),
    revision: fc.constant(0),
    sortOrder: fc.constantFrom('none', 'ascend', 'descend'),
    sortTarget: fc.constantFrom('key', 'version', 'create', 'mod', 'value'),
    keysOnly: fc.boolean(),
    countOnly: fc.boolean(),
    minModRevision: fc.constantFrom(0, 0, 5),
    maxModRevision: fc.constantFrom(0, 0, 4),
    minCreateRevision: fc.constantFrom(0, 0, 2),
    maxCreateRevision: fc.constantFrom(0, 0, 2),
  })
  .map(({ end, ...op }) => (end === undefined ? op : { ...op, end }));

const compares: fc.Arbitrary<KeyCompare> = fc
  .record({
    key: fc.constantFrom(...KEYS).map(bytes),
    end: fc.option(fc.constantFrom('', ...KEYS).map(bytes), { nil: undefined }),
    result: fc.constantFrom('equal', 'greater', 'less', 'notEqual'),
    target: fc.oneof(
      fc.record({ of: fc.constantFrom('version', 'create', 'mod'), value: fc.nat(4) }),
      fc.record({ of: fc.constant('value' as const), value: fc.constantFrom('x', 'y').map(bytes) }),
    ),
  })
  .map(({ end, ...compare }) => (end === undefined ? compare : { ...compare, end }));

/** The answer of one range that has everything. */
function whole(op: RangeOp, kvs: readonly KeyValue[]): RangeResult {
  const found = kvs.filter(({ key }) => within(op, key));
  return shapeRange(op, { kvs: found, count: found.length });
}

function within({ key, end }: Pick<RangeOp, 'key' | 'end'>, at: Uint8Array): boolean {
  if (end === undefined) return Buffer.compare(key, at) === 0;
  return Buffer.compare(key, at) <= 0 && (end.length === 0 || Buffer.compare(at, end) < 0);
}

/** Ranges that answer as data servers do, and are split meanwhile: whoever asks is told where keys are now. */
class Ranges {
  readonly #world: World;
  readonly #routes = new RouteMap();
  #ranges: readonly RangeDescriptor[] = [];
  #borders: readonly string[];
  #asks = 0;
  #draws = 0;

  constructor(world: World) {
    this.#world = world;
    this.#borders = world.borders;
    this.#arrange(1);
    this.#routes.learn(this.#ranges);
  }

  #arrange(version: number): void {
    const keys = [...new Set(this.#borders)].sort().map((border) => kvRoutingKey(bytes(border)));
    const none = Buffer.alloc(0);
    this.#ranges = [none, ...keys].map((start, i) => ({
      ...{ rangeId: start[1] ?? 1, start, end: keys[i] ?? none, replicas: [], revisionSource: 'master' as const },
      epoch: { confVersion: 1, version },
    }));
  }

  /** `recent`: what was drawn a moment before. */
  read(recent?: number): SnapshotRead {
    const newest: Pick<NewestRevision, 'recent' | 'draw'> = {
      recent: (floor) => (recent !== undefined && recent >= floor ? recent : undefined),
      draw: async (floor) => {
        this.#draws++;
        return Math.max(this.#world.newest, floor);
      },
    };
    return new SnapshotRead({
      newest: newest as NewestRevision,
      routesOf: async (span) => this.#routes.covering(span) ?? [],
      ask: (query, span) => this.#ask(query, span),
      pause: () => Promise.resolve(),
      signal: new AbortController().signal,
    });
  }

  async #ask(query: Query, span: { readonly start: Uint8Array; readonly end: Uint8Array }): Promise<RangeReply> {
    this.#asks++;
    for (const { border, afterAsks } of this.#world.later) {
      if (afterAsks !== this.#asks) continue;
      this.#borders = [...this.#borders, border];
      this.#arrange(1 + this.#asks);
    }
    if (!this.#ranges.some((range) => spanCovers(range, span))) {
      this.#routes.learn(this.#ranges);
      throw staleEpoch([]);
    }
    return { revision: 1, raftTerm: 7, rangeTimeMs: 0, result: this.#answer(query, span) };
  }

  #answer(query: Query, span: { readonly start: Uint8Array; readonly end: Uint8Array }): RangeReply['result'] {
    if (query.type === 'closedRevision') {
      return { type: 'closedRevision', closed: query.revision, floor: this.#world.floor };
    }
    if (query.type !== 'readTxn') throw new ServiceError('INTERNAL', query.type);
    const results = query.txn.success.map((op) => {
      if (op.type !== 'range') throw new ServiceError('INTERNAL', op.type);
      expect(spanCovers(span, keysSpan(op)), 'a range is asked for no keys but those it was asked about').toBe(true);
      // Everything was written at the last moment.
      return whole(op, op.revision < this.floor ? [] : this.#world.kvs);
    });
    return { type: 'txn', succeeded: true, results };
  }

  /** SR2: at how high a revision everything must have been read. */
  get floor(): number {
    return Math.max(this.#world.newest, this.#world.floor);
  }

  get draws(): number {
    return this.#draws;
  }
}

describe('a read over several ranges, split while it is under way', () => {
  test('answers as one range would', async () => {
    await fc.assert(
      fc.asyncProperty(worlds, reads, async (world, op) => {
        const ranges = new Ranges(world);
        const { result, revision } = await ranges.read().run({ type: 'range', op, serializable: false });
        expect(result).toEqual(whole(op, world.kvs));
        expect(revision).toBe(ranges.floor);
        expect(ranges.draws).toBe(world.floor > world.newest ? 2 : 1);
      }),
      { seed: 4, numRuns: 400 },
    );
  });

  test('and so does a transaction that reads, with comparisons and transactions within', async () => {
    const branches = fc.array(reads, { maxLength: 3 });
    const inner = fc.record({ compare: fc.array(compares, { maxLength: 2 }), success: branches, failure: branches });
    const ops = fc.tuple(branches, inner).map(([some, txn]): readonly KvOp[] => [...some, { type: 'txn', txn }]);
    const txns = fc.record({ compare: fc.array(compares, { maxLength: 3 }), success: ops, failure: ops });
    await fc.assert(
      fc.asyncProperty(worlds, txns, async (world, txn) => {
        const { result } = await new Ranges(world).read().run({ type: 'readTxn', txn, serializable: false });
        expect(result).toEqual(evaluated({ type: 'txn', txn }, world.kvs));
      }),
      { seed: 5, numRuns: 300 },
    );
  });

  test('refuses a revision that nobody was given, and what writes', async () => {
    const world: World = { borders: ['c'], later: [], kvs: [], newest: 3, floor: 8 };
    const op = rangeOp({ key: bytes('a'), end: bytes('z') });
    const codeOf = (query: Extract<Query, { type: 'range' | 'readTxn' }>) =>
      new Ranges(world)
        .read()
        .run(query)
        .then(
          ({ revision }) => revision,
          (error: ServiceError) => error.code,
        );
    const at = (revision: number) => codeOf({ type: 'range', op: { ...op, revision }, serializable: false });
    expect([await at(8), await at(9)]).toEqual([8, 'FUTURE_REVISION']);
    const del: KvOp = { type: 'delete', key: bytes('a'), prevKv: false };
    const txn = { compare: [], success: [del], failure: [] };
    expect(await codeOf({ type: 'readTxn', txn, serializable: false })).toBe('INVALID_ARGUMENT');
  });
});

test('a serializable read of a revision that was given a moment ago finds it, behind what was drawn before (SR3)', async () => {
  const world: World = { borders: ['c'], later: [], kvs: [], newest: 10, floor: 0 };
  const op = rangeOp({ key: bytes('a'), end: bytes('z') });
  const read = async (revision: number) => {
    const ranges = new Ranges(world);
    const reply = await ranges.read(6).run({ type: 'range', op: { ...op, revision }, serializable: true });
    return [reply.revision, ranges.draws];
  };
  expect([await read(6), await read(9)]).toEqual([
    [6, 0],
    [10, 1],
  ]);
  await expect(read(11)).rejects.toMatchObject({ code: 'FUTURE_REVISION' });
});

function evaluated(op: KvOp, kvs: readonly KeyValue[]): unknown {
  if (op.type !== 'txn') return op.type === 'range' ? whole(op, kvs) : undefined;
  const { compare, success, failure } = op.txn;
  const succeeded = compare.filter(isKeyCompare).every((one) => {
    const found = kvs.filter(({ key }) => within(one, key));
    return found.length === 0 ? compareHolds(one, undefined) : found.every((kv) => compareHolds(one, kv));
  });
  return { type: 'txn', succeeded, results: (succeeded ? success : failure).map((each) => evaluated(each, kvs)) };
}
