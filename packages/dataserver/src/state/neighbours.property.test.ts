import { EMPTY_BYTES, nodeClock, type Row, SeededRandom, type Span, silentLogger } from '@remora/base';
import { type LockCommand, lockSpan } from '@remora/lock';
import { type Command, kvRoutingKey, type RangeDescriptor } from '@remora/protocol';
import { expect, test } from 'vitest';
import { CONF, DESCRIPTOR, del, memoryEngine, put, range, StateBed } from '../../test/support/state-bed.ts';
import { takeSnapshot } from '../install/snapshot-source.ts';
import { SnapshotParser } from '../install/snapshot-stream.ts';
import { HistoryCollector } from '../range/history-collector.ts';
import { rangeSpans } from './bounds.ts';
import { leaseKey } from './keys.ts';

const NAMES = ['a', 'b', 'b\0', 'ba', 'c', '\xff'];
const LEASES = [1n, 2n, 3n, -1n];
const BORDERS = [
  leaseKey(2n),
  lockSpan({ namespace: 'n', name: Buffer.from('b') }).start,
  Buffer.from([3]),
  kvRoutingKey(Buffer.from('b')),
  kvRoutingKey(Buffer.from('b\0')),
];

/** A command for any place; what is not for the range is refused by its bounds. */
function command(random: SeededRandom): Command {
  const name = NAMES[random.int(NAMES.length)] ?? 'a';
  const lease = LEASES[random.int(LEASES.length)] ?? 1n;
  switch (random.int(9)) {
    case 0:
      return { type: 'leaseGrant', id: lease, ttlMs: 5_000, attributes: {} };
    case 1:
      return { type: 'leaseRevoke', id: lease, incarnation: 0 };
    case 2:
      return { type: 'compact', revision: 1 + random.int(20) };
    case 3:
    case 4:
      return { type: 'lock', command: acquire(name, lease) };
    case 5:
      return {
        type: 'kv',
        op: del(name, NAMES[random.int(NAMES.length)]) as Exclude<ReturnType<typeof del>, { type: 'txn' }>,
      };
    case 6:
      return { type: 'kv', op: range(name, '\xff') };
    default:
      return { type: 'kv', op: put(name, String(random.int(100)), { lease: random.int(3) === 0 ? lease : 0n }) };
  }
}

function acquire(name: string, lease: bigint): LockCommand {
  return {
    ...{ type: 'acquire', lock: { namespace: 'n', name: Buffer.from(name) }, wait: true, waitUntilMs: 0 },
    owner: { session: { lease, incarnation: 2 }, token: `of ${lease}` },
    ...{ deadlineMs: 0, depthMax: 9, data: EMPTY_BYTES },
  };
}

async function rowsOf(bed: StateBed): Promise<readonly Row[]> {
  bed.state.stage();
  const rows: Row[] = [];
  for (const span of rangeSpans(bed.state.rangeId, bed.state.bounds)) rows.push(...(await bed.engine.scan(span)));
  return rows;
}

async function snapshotOf(bed: StateBed): Promise<readonly Row[]> {
  bed.state.stage();
  const { rangeId, applied, bounds } = bed.state;
  const snapshot = takeSnapshot(bed.engine, { rangeId, span: bounds, meta: { ...applied, conf: CONF }, bytes: 0 });
  const parser = new SnapshotParser({ rangeId, applied });
  const rows: Row[] = [];
  for await (const chunk of snapshot.chunks) for (const found of parser.push(Buffer.from(chunk))) rows.push(...found);
  parser.finish();
  snapshot.release();
  expect(parser.span?.start).toEqual(Buffer.from(bounds.start));
  expect(parser.span?.end).toEqual(Buffer.from(bounds.end));
  return rows;
}

async function collect(bed: StateBed): Promise<void> {
  const { history } = bed.state.bounds;
  if (history === undefined) return;
  let done = (): void => {};
  const ended = new Promise<void>((resolve) => {
    done = resolve;
  });
  const view = bed.engine.view.bind(bed.engine);
  bed.engine.view = () => {
    const inner = view();
    return {
      get: (key) => inner.get(key),
      scan: (options) => inner.scan(options),
      release: () => {
        inner.release();
        done();
      },
    };
  };
  new HistoryCollector(bed.engine, history, { clock: nodeClock(), logger: silentLogger }).collect(
    bed.state.compactRevision,
  );
  await ended;
  bed.engine.view = view;
}

function descriptor(rangeId: number, span: Span): RangeDescriptor {
  return { ...DESCRIPTOR, rangeId, start: span.start, end: span.end };
}

test.each([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])(
  'two ranges in one engine are what each of them is in one of its own (seed %i)',
  async (seed) => {
    const random = new SeededRandom(seed);
    const border = BORDERS[seed % BORDERS.length] ?? EMPTY_BYTES;
    const parts = [
      descriptor(2, { start: EMPTY_BYTES, end: border }),
      descriptor(3, { start: border, end: EMPTY_BYTES }),
    ];
    const engine = memoryEngine();
    const together = parts.map((part) => new StateBed({ engine, descriptor: part }));
    const apart = parts.map((part) => new StateBed({ descriptor: part }));
    let executed = 0;
    for (let i = 0; i < 300; i++) {
      const next = command(random);
      const at = random.int(2);
      const request = { requestId: `r${i}`, deadlineMs: 10_000 };
      const [ours, theirs] = [await together[at]?.run(next, request), await apart[at]?.run(next, request)];
      expect(ours).toEqual(theirs);
      if (ours?.ok) executed++;
    }
    expect(executed).toBeGreaterThan(30);
    for (const [i, bed] of together.entries()) {
      const alone = apart[i];
      if (alone === undefined) throw new Error('there are two');
      await collect(bed);
      await collect(alone);
      expect(await rowsOf(bed)).toEqual(await rowsOf(alone));
      expect(await snapshotOf(bed)).toEqual(await rowsOf(alone));
      const again = new StateBed({ engine, descriptor: bed.state.descriptor });
      expect([...again.state.leases.all()]).toEqual([...alone.state.leases.all()].sort(byRow));
    }
  },
);

function byRow(a: { readonly id: bigint }, b: { readonly id: bigint }): number {
  return Buffer.compare(leaseKey(a.id), leaseKey(b.id));
}
