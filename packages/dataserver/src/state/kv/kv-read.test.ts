import { silentLogger } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import { expect, test } from 'vitest';
import { del, HISTORY, put, range, StateBed } from '../../../test/support/state-bed.ts';
import { HistoryCollector } from '../../range/history-collector.ts';
import { fetchAll } from './kv-read.ts';

/** Five keys of which two are left, one of them with a past; compacted at the revision of the last change. */
async function compacted(): Promise<StateBed> {
  const bed = new StateBed();
  for (const key of ['a', 'b', 'c', 'd', 'e', 'a', 'a']) {
    await bed.ok({ type: 'txn', txn: { compare: [], success: [put(key, 'v'.repeat(10))], failure: [] } });
  }
  await bed.ok({ type: 'txn', txn: { compare: [], success: [del('c', 'f')], failure: [] } });
  await bed.ok({ type: 'compact', revision: bed.state.revision });
  await bed.ok({ type: 'txn', txn: { compare: [], success: [put('x', '')], failure: [] } });
  return bed;
}

async function collected(bed: StateBed): Promise<void> {
  const collector = new HistoryCollector(bed.engine, HISTORY, { clock: new ManualClock(), logger: silentLogger });
  collector.collect(bed.state.compactRevision);
  for (let turn = 0; turn < 1_000; turn++) await Promise.resolve();
}

test('what an operation may cover at an earlier revision does not depend on what a node has removed of older versions', async () => {
  const answers: unknown[] = [];
  for (const collects of [false, true]) {
    const bed = await compacted();
    const before = (await bed.engine.scan(HISTORY)).length;
    if (collects) await collected(bed);
    const after = (await bed.engine.scan(HISTORY)).length;
    expect(after < before).toBe(collects);
    const op = range('a', 'z', { revision: bed.state.compactRevision });
    const wanted = [{ range: op, revision: op.revision }];
    const limits = { rowsMax: 5, bytesMax: 60 };
    const view = bed.engine.view();
    const found = await fetchAll(view, wanted, { bounds: bed.state, changing: true, limits });
    answers.push(found.get(op)?.kvs.map(({ key, value }) => `${Buffer.from(key)}=${value.length}`));
    view.release();
  }
  expect(answers).toEqual([
    ['a=10', 'b=10'],
    ['a=10', 'b=10'],
  ]);
});

test.each([
  { name: 'a read with a limit', wanted: { limit: 2 }, kept: 3 },
  { name: 'a read that only counts', wanted: { countOnly: true }, kept: 0 },
])('$name holds no more pairs than it answers with, now as at an earlier revision', async ({ wanted, kept }) => {
  const bed = new StateBed();
  for (const key of ['a', 'b', 'c', 'd', 'e']) await bed.ok({ type: 'kv', op: put(key, key) });
  const past = bed.state.revision;
  for (const key of ['b', 'f']) await bed.ok({ type: 'kv', op: put(key, 'later') });
  const found: unknown[] = [];
  for (const revision of [past, bed.state.revision]) {
    const op = range('a', 'z', { ...wanted, revision });
    const view = bed.engine.view();
    const limits = { rowsMax: 3, bytesMax: 300 };
    const pairs = await fetchAll(view, [{ range: op, revision }], { bounds: bed.state, changing: false, limits });
    view.release();
    found.push([pairs.get(op)?.count, pairs.get(op)?.kvs.length]);
  }
  expect(found).toEqual([
    [5, kept],
    [6, kept],
  ]);
});
