import { describe, expect, test } from 'vitest';
import { DESCRIPTOR, put, range, StateBed, show } from '../../../test/support/state-bed.ts';

const compact = (revision: number) => ({ type: 'compact' as const, revision });
const write = (value: string) => ({ type: 'kv' as const, op: put('a', value) });
const readAt = (revision: number) => ({ type: 'kv' as const, op: range('a', undefined, { revision }) });

describe('compacting a range that the master numbers', () => {
  async function numbered(): Promise<StateBed> {
    const bed = new StateBed({ descriptor: { ...DESCRIPTOR, revisionSource: 'master' } });
    bed.block = { first: 100, count: 5 };
    await bed.ok(write('old'));
    return bed;
  }

  test('at a revision that it has not reached makes it move on: it reads and writes above', async () => {
    const bed = await numbered();
    await bed.ok(compact(300));
    expect(bed.state).toMatchObject({ revision: 300, compactRevision: 300 });
    expect(await bed.run(readAt(100))).toMatchObject({ ok: false, code: 'COMPACTED' });
    expect(show(await bed.ok(readAt(300)))).toBe('a=old@100/100/1');
    bed.block = { first: 290, count: 5 };
    expect(await bed.run(write('new'))).toMatchObject({ ok: false, code: 'UNAVAILABLE' });
    bed.block = { first: 310, count: 5 };
    expect(await bed.run(write('new'))).toMatchObject({ ok: true, revision: 310 });
  });

  test('at one that it has passed changes no revision', async () => {
    const bed = await numbered();
    await bed.ok(compact(100));
    expect(bed.state).toMatchObject({ revision: 100, compactRevision: 100 });
    expect(await bed.run(compact(99))).toMatchObject({ ok: false, code: 'COMPACTED' });
  });
});

test('compacting at 0 is accepted before the first compaction, and refused afterwards', async () => {
  const bed = new StateBed();
  await bed.ok(write('old'));
  await bed.ok(compact(0));
  expect(bed.state).toMatchObject({ revision: 2, compactRevision: 0 });
  await bed.ok(compact(1));
  for (const revision of [0, 1])
    expect(await bed.run(compact(revision))).toMatchObject({ ok: false, code: 'COMPACTED' });
});

test('a range that counts by itself is not compacted in its future', async () => {
  const bed = new StateBed();
  await bed.ok(write('old'));
  expect(await bed.run(compact(3))).toMatchObject({ ok: false, code: 'FUTURE_REVISION' });
  expect(bed.state).toMatchObject({ revision: 2, compactRevision: 0 });
});
