import { type Bytes, EMPTY_BYTES } from '@remora/base';
import { lockSpan } from '@remora/lock';
import { currentRanges, kvRoutingKey, type RangeDescriptor } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { CONF, DESCRIPTOR, del, put, range, StateBed, show } from '../../../test/support/state-bed.ts';
import { EntryRun } from '../entry-run.ts';
import { errorOf, type Outcome } from '../outcomes/outcome-codec.ts';
import { CHILD_BEGINS, type SplitCommand } from './split.ts';

const kv = (op: ReturnType<typeof put> | ReturnType<typeof del> | ReturnType<typeof range>) => {
  if (op.type === 'txn') throw new Error('not here');
  return { type: 'kv' as const, op };
};
const LOCK = { namespace: 'n', name: Buffer.from('lock') };

function splitAt(at: Bytes, more: Partial<SplitCommand> = {}): SplitCommand {
  const replicas = [{ nodeId: 1, replicaId: 31 }];
  return { type: 'split', at, epoch: DESCRIPTOR.epoch, childId: 3, replicas, keys: 1, bytes: 3, ...more };
}

const atKey = (key: string): Buffer => kvRoutingKey(Buffer.from(key));

/** The parent and its child behind a split, over one engine; the master gave both of them revisions from 100 on. */
async function split(bed: StateBed, command = splitAt(atKey('m'))): Promise<{ left: StateBed; right: StateBed }> {
  await bed.ok(command);
  const [start] = bed.children;
  if (start === undefined) throw new Error('a split makes a child');
  const right = new StateBed({ engine: bed.engine, start });
  for (const each of [bed, right]) each.block = { first: 100, count: 50 };
  return { left: bed, right };
}

function code(outcome: Outcome): string {
  return outcome.ok ? 'ok' : outcome.code;
}

describe('a split', () => {
  test('gives the range and its child one version more, and numbers by the master, and parts them at the key', async () => {
    const { left, right } = await split(new StateBed());
    const epoch = { confVersion: 1, version: 2 };
    const descriptors: RangeDescriptor[] = [left.state.descriptor, right.state.descriptor];
    expect(descriptors).toEqual([
      { ...DESCRIPTOR, epoch, end: atKey('m'), revisionSource: 'master' },
      {
        ...{ ...DESCRIPTOR, rangeId: 3, epoch, start: atKey('m'), revisionSource: 'master' },
        replicas: [{ replicaId: 31, nodeId: 1, type: 'voter' }],
      },
    ]);
    expect(right.state.conf).toEqual({ ...CONF, voters: [31] });
    expect(right.state.applied).toEqual(CHILD_BEGINS);
  });

  test('moves no row: each of the two reads and changes its own, and refuses what the other has', async () => {
    const bed = new StateBed();
    for (const key of ['a', 'm', 'z']) await bed.ok(kv(put(key, '1')));
    await bed.ok(kv(put('z', '2')));
    const { left, right } = await split(bed);
    expect(show(await left.ok(kv(range('a', 'm'))))).toBe('a=1@2/2/1');
    expect(show(await right.ok(kv(range('m', '~'))))).toBe('m=1@3/3/1 z=2@5/4/2');
    expect(show(await right.ok(kv(range('z', undefined, { revision: 4 }))))).toBe('z=1@4/4/1');
    expect([code(await left.run(kv(put('m', '9')))), code(await right.run(kv(put('a', '9'))))]).toEqual([
      'STALE_EPOCH',
      'STALE_EPOCH',
    ]);
    expect(code(await left.run(kv(range('a', 'n'))))).toBe('STALE_EPOCH');
    await left.ok(kv(put('b', '3')));
    await right.ok(kv(del('z')));
    expect([left.state.revision, right.state.revision]).toEqual([100, 100]);
    expect(show(await left.ok(kv(range('a', 'm'))))).toBe('a=1@2/2/1 b=3@100/100/1');
    expect(show(await right.ok(kv(range('m', '~'))))).toBe('m=1@3/3/1');
  });

  test('divides what is counted as it was measured, and never below nothing', async () => {
    const bed = new StateBed();
    for (const key of ['a', 'b', 'z']) await bed.ok(kv(put(key, '12')));
    const { left, right } = await split(bed, splitAt(atKey('m'), { keys: 1, bytes: 99 }));
    expect([left.state.keys, left.state.bytes, right.state.keys, right.state.bytes]).toEqual([2, 0, 1, 9]);
  });

  test('counts no less than nothing when more is deleted than was measured, so that the state can be read again', async () => {
    const bed = new StateBed();
    for (const key of ['x', 'y', 'z']) await bed.ok(kv(put(key, '12')));
    const { right } = await split(bed, splitAt(atKey('m'), { keys: 1, bytes: 3 }));
    await right.ok(kv(del('x', '~')));
    expect([right.state.keys, right.state.bytes]).toEqual([0, 0]);
    await right.checkpoint();
    const again = new StateBed({ engine: bed.engine, descriptor: right.state.descriptor });
    expect(again.state.revision).toBe(right.state.revision);
  });

  test('leaves both with what was remembered: a retry is answered, on either side, and not applied again', async () => {
    const bed = new StateBed();
    const early = { requestId: 'early', deadlineMs: 5_000 };
    const stored = { requestId: 'stored', deadlineMs: 5_000 };
    const first = await bed.run(kv(put('z', '1')), stored);
    await bed.checkpoint();
    await bed.run(kv(put('a', '1')), early);
    const { left, right } = await split(bed);
    expect(await right.run(kv(put('z', '1')), stored)).toEqual(first);
    expect(await left.run(kv(put('a', '1')), early)).toMatchObject({ ok: true, revision: 3 });
    expect(show(await right.ok(kv(range('z'))))).toBe('z=1@2/2/1');
    await left.checkpoint();
    await right.checkpoint();
    const again = new StateBed({ engine: bed.engine, descriptor: right.state.descriptor });
    expect(await again.run(kv(put('z', '1')), stored)).toEqual(first);
    // Both forget in their own time.
    right.timeMs = 10_000;
    await right.ok({ type: 'noop' });
    expect([right.state.outcomes.count, left.state.outcomes.count]).toEqual([0, 2]);
  });

  test('keeps the compacted revision, the last one and the time', async () => {
    const bed = new StateBed();
    for (const value of ['1', '2', '3']) await bed.ok(kv(put('z', value)));
    bed.timeMs = 7_000;
    await bed.ok({ type: 'compact', revision: 3 });
    const { right } = await split(bed);
    expect(right.state).toMatchObject({ revision: 4, compactRevision: 3, rangeTimeMs: 7_000 });
  });

  test('takes leases along when it is among them', async () => {
    const bed = new StateBed();
    for (const id of [1n, 2n]) await bed.ok({ type: 'leaseGrant', id, ttlMs: 5_000, attributes: {} });
    await bed.ok(kv(put('a', '1', { lease: 2n })));
    const { left, right } = await split(bed, splitAt(Buffer.from([1, 0, 0, 0, 0, 0, 0, 0, 2])));
    expect([[...left.state.leases.all()].length, [...right.state.leases.all()].map(({ id }) => id)]).toEqual([1, [2n]]);
    await right.ok({ type: 'leaseRevoke', id: 2n, incarnation: 0 });
    expect(show(await right.ok(kv(range('a'))))).toBe('');
    expect(code(await left.run({ type: 'leaseRevoke', id: 2n, incarnation: 0 }))).toBe('STALE_EPOCH');
  });
});

test('a range that is split where leases begin knows of none any more', async () => {
  const bed = new StateBed();
  await bed.ok({ type: 'leaseGrant', id: 1n, ttlMs: 5_000, attributes: {} });
  const { left, right } = await split(bed, splitAt(Buffer.from([1])));
  expect([left.state.leases.size, right.state.leases.size]).toEqual([0, 1]);
});

describe('a split is refused', () => {
  async function bedWithLease(): Promise<StateBed> {
    const bed = new StateBed();
    await bed.ok({ type: 'leaseGrant', id: 7n, ttlMs: 5_000, attributes: {} });
    await bed.ok(kv(put('x', '1', { lease: 7n })));
    const session = { lease: 7n, incarnation: 2 };
    await bed.ok({
      type: 'lock',
      command: {
        ...{ type: 'acquire', lock: LOCK, owner: { session, token: 't' }, wait: false, waitUntilMs: 0 },
        ...{ deadlineMs: 0, depthMax: 1, data: EMPTY_BYTES },
      },
    });
    return bed;
  }
  const child = (nodeId: number, replicaId: number) => ({ replicas: [{ nodeId, replicaId }] });

  test.each<{ name: string; command: SplitCommand; expected: string; says: string }>([
    { name: 'at the border', command: splitAt(EMPTY_BYTES), expected: 'INVALID_ARGUMENT', says: 'begins at that key' },
    { name: 'in no key space', command: splitAt(Buffer.from([4])), expected: 'INVALID_ARGUMENT', says: 'no key space' },
    {
      name: 'within a lock',
      command: splitAt(Buffer.concat([lockSpan(LOCK).start, Buffer.from([1])])),
      expected: 'INVALID_ARGUMENT',
      says: 'records of a lock',
    },
    {
      name: 'for an earlier membership',
      command: splitAt(atKey('y'), { epoch: { confVersion: 0, version: 1 } }),
      expected: 'STALE_EPOCH',
      says: 'since',
    },
    {
      name: 'for an earlier version',
      command: splitAt(atKey('y'), { epoch: { confVersion: 1, version: 0 } }),
      expected: 'STALE_EPOCH',
      says: 'since',
    },
    {
      name: 'with a child of the same id',
      command: splitAt(atKey('y'), { childId: 2 }),
      expected: 'INVALID_ARGUMENT',
      says: 'id of its own',
    },
    {
      name: 'without a replica for each node',
      command: splitAt(atKey('y'), { replicas: [] }),
      expected: 'INVALID_ARGUMENT',
      says: 'each of its nodes',
    },
    {
      name: 'with a replica on another node',
      command: splitAt(atKey('y'), child(2, 31)),
      expected: 'INVALID_ARGUMENT',
      says: 'each of its nodes',
    },
    {
      name: 'with a replica id that is taken',
      command: splitAt(atKey('y'), child(1, 1)),
      expected: 'INVALID_ARGUMENT',
      says: 'each of its nodes',
    },
  ])('$name, with the reason, and changes nothing', async ({ command, expected, says }) => {
    const bed = await bedWithLease();
    const before = [bed.state.descriptor, bed.state.revision, bed.state.keys];
    const outcome = await bed.run(command);
    expect(code(outcome)).toBe(expected);
    expect(outcome.ok ? '' : outcome.message).toContain(says);
    expect([bed.state.descriptor, bed.state.revision, bed.state.keys]).toEqual(before);
    expect(bed.children).toEqual([]);
  });

  test('while the membership is joint', async () => {
    const bed = new StateBed();
    bed.state.conf = { ...CONF, votersOutgoing: [1, 9] };
    expect(code(await bed.run(splitAt(atKey('m'))))).toBe('UNAVAILABLE');
  });

  test('outside of the range, and a key within is taken', async () => {
    const { right } = await split(new StateBed());
    const { epoch } = right.state.descriptor;
    const again = (key: string) => splitAt(atKey(key), { epoch, childId: 4, replicas: [{ nodeId: 1, replicaId: 41 }] });
    expect([code(await right.run(again('a'))), code(await right.run(again('m')))]).toEqual([
      'INVALID_ARGUMENT',
      'INVALID_ARGUMENT',
    ]);
    expect(code(await right.run(again('n')))).toBe('ok');
    expect(right.state.descriptor.end).toEqual(atKey('n'));
  });
});

test('a command from before a split is refused, and is told where its key was', async () => {
  const { left } = await split(new StateBed());
  const outcomes: Outcome[] = [];
  const item = { requestId: 'late', deadlineMs: 9_000, command: kv(put('a', '1')) };
  const old = { rangeTimeMs: 1_000, wallMs: 0, epoch: DESCRIPTOR.epoch, commands: [item] };
  const position = { index: left.state.applied.index + 1, term: 1 };
  const onOutcome = (_i: number, outcome: Outcome): void => void outcomes.push(outcome);
  await EntryRun.begin(left.state, position, old, { onOutcome }).apply();
  const [outcome] = outcomes;
  if (outcome === undefined || outcome.ok) throw new Error('it is refused');
  expect(currentRanges(errorOf(outcome))).toEqual([left.state.descriptor]);
  expect(left.state.outcomes.recall('late')).toBeUndefined(); // refused, it may come again by another way
});
