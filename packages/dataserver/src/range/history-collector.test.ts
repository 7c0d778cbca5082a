import { silentLogger } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import { expect, test } from 'vitest';
import { HISTORY, put, StateBed } from '../../test/support/state-bed.ts';
import { HistoryCollector } from './history-collector.ts';

const KEY = { key: Buffer.from('a') };

test('a version goes although what followed it is deleted while the pass runs (HC4)', async () => {
  const bed = new StateBed();
  const { engine, state } = bed;
  for (const value of ['1', '2']) await bed.ok({ type: 'kv', op: put('a', value) });
  await bed.ok({ type: 'compact', revision: state.revision });
  const clock = new ManualClock();
  const collector = new HistoryCollector(engine, HISTORY, { clock, logger: silentLogger });
  collector.collect(state.compactRevision);
  await bed.ok({ type: 'kv', op: { type: 'delete', ...KEY, prevKv: false } });
  for (let i = 0; i < 5; i++) {
    await new Promise((resolve) => setImmediate(resolve));
    clock.advance(1);
  }
  // What is left can be read at the revision of the compaction: the second put, and its deletion.
  expect(await engine.scan(HISTORY)).toHaveLength(2);
});
