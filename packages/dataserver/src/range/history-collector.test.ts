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

test('a pass lets other work run every 64 versions, and deletes nothing once it is stopped (HC5)', async () => {
  const bed = new StateBed();
  const { engine, state } = bed;
  for (let i = 0; i < 200; i++) await bed.ok({ type: 'kv', op: put('a', `${i}`) });
  await bed.ok({ type: 'compact', revision: state.revision });
  const immediates: (() => void)[] = [];
  const clock = new ManualClock();
  const collector = new HistoryCollector(engine, HISTORY, {
    clock: {
      wallMs: () => clock.wallMs(),
      monotonicMs: () => clock.monotonicMs(),
      setTimer: (delayMs, fn) => clock.setTimer(delayMs, fn),
      setImmediate: (fn) => void immediates.push(fn),
    },
    logger: silentLogger,
  });
  const left: number[] = [];
  collector.collect(state.compactRevision);
  for (let turn = 0; turn < 4; turn++) {
    await new Promise((resolve) => setImmediate(resolve));
    left.push((await engine.scan(HISTORY)).length);
    if (turn === 2) collector.stop();
    immediates.shift()?.();
  }
  expect(left).toEqual([136, 72, 8, 8]);
});
