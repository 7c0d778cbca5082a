import { silentLogger } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import { expect, test } from 'vitest';
import { HISTORY, put, StateBed } from '../../test/support/state-bed.ts';
import { historyKey } from '../state/keys.ts';
import { ReplicaRows } from './replica-rows.ts';

const KEY = Buffer.from('a');

test('what is written below what was compacted is cleared up too, and nothing above it (RR2)', async () => {
  const bed = new StateBed();
  const { engine, state } = bed;
  for (const value of ['1', '2', '3']) await bed.ok({ type: 'kv', op: put('a', value) });
  await bed.ok({ type: 'compact', revision: state.revision });
  const clock = new ManualClock();
  const unused = (): never => {
    throw new Error('no rows are replaced here');
  };
  const rows = new ReplicaRows(
    { ...{ engine, clock, logger: silentLogger, sharing: unused, swallowed: unused }, installer: unused as never },
    state,
  );
  const passed = async (): Promise<number> => {
    for (let i = 0; i < 5; i++) {
      await new Promise((resolve) => setImmediate(resolve));
      clock.advance(1);
    }
    return (await engine.scan(HISTORY)).length;
  };
  expect(await passed()).toBe(0);
  engine.put(historyKey(KEY, state.compactRevision - 1), Buffer.alloc(0));
  rows.written(state.compactRevision + 1);
  expect(await passed()).toBe(1);
  rows.written(state.compactRevision - 1);
  expect(await passed()).toBe(0);
  rows.close();
});
