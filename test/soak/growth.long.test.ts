import { beforeAll, expect, test } from 'vitest';
import { type GrowthReport, runGrowth } from './growth.ts';
import { judgeGrowth } from './growth-verdict.ts';

/** The short form of `pnpm growth`: small values and small ranges. */
let report: GrowthReport;

beforeAll(async () => {
  report = await runGrowth({
    values: 6_000,
    valueBytes: 512,
    sizes: { check: 256 * 1024, split: 512 * 1024, max: 4 * 512 * 1024 },
    inflight: 32,
    shrinks: true,
  });
}, 900_000);

test('ranges split by themselves while they are loaded, stay within their size, lose nothing, and are merged when emptied', () => {
  expect(judgeGrowth(report).filter(({ holds }) => !holds)).toEqual([]);
});
