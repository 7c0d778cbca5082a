/** `remora/redlock` beside the library whose API it has: each row runs on both, and both outcomes are compared. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { describeWith } from '../support/needs.ts';
import { missingRedis } from './redlock/redis-servers.ts';
import { Bench, type Row } from './redlock/row.ts';
import { ACQUIRE_ROWS } from './redlock/rows-acquire.ts';
import { HOLD_ROWS } from './redlock/rows-hold.ts';
import { INSTANCE_ROWS } from './redlock/rows-instance.ts';
import { MAJORITY_ROWS, MINORITY_ROWS } from './redlock/rows-outage.ts';
import { USING_ROWS } from './redlock/rows-using.ts';
import type { Side } from './redlock/side.ts';
import { redisSide, remoraSide } from './redlock/sides.ts';

const TOGETHER = [...INSTANCE_ROWS, ...ACQUIRE_ROWS, ...HOLD_ROWS, ...USING_ROWS];
const OUTAGES = [...MINORITY_ROWS, ...MAJORITY_ROWS];

/** Runs all rows, and those that do no harm at the same time. */
function table(start: () => Promise<Side>, expected: (row: Row) => unknown): void {
  let side: Side;
  beforeAll(async () => {
    side = await start();
  });
  afterAll(() => side?.stop());

  const check = async (row: Row, at: number): Promise<void> => {
    expect(await row.run(new Bench(side, `row-${at}`))).toEqual(expected(row));
  };
  describe('in any order', () => {
    test.concurrent.each(TOGETHER.map((row, at) => ({ row, at, name: row.name })))('$name', ({ row, at }) =>
      check(row, at),
    );
  });
  describe('one after the other', () => {
    test.each(OUTAGES.map((row, at) => ({ row, at: TOGETHER.length + at, name: row.name })))('$name', ({ row, at }) =>
      check(row, at),
    );
  });
}

describeWith(missingRedis(), 'the library redlock on five Redis servers', () => {
  table(redisSide, ({ outcome }) => outcome);
});

describe('remora/redlock on a cluster of three nodes', () => {
  table(remoraSide, ({ outcome, differs }) => (differs === undefined ? outcome : differs.outcome));
});
