import { beforeAll, expect, test } from 'vitest';
import { type OverloadReport, runOverload } from './overload.ts';
import { judgeFunction } from './overload-verdict.ts';

/** The short form of `pnpm overload`: what it promises but for speed, at a rate that any machine offers. */
let report: OverloadReport;

beforeAll(async () => {
  report = await runOverload({
    limit: 100,
    times: 10,
    seconds: 8,
    calmSeconds: 1,
    sessions: 10,
    sessionTtlMs: 5_000,
  });
});

test('ten times the limit is refused for certain, and neither sessions nor locks suffer', () => {
  expect(judgeFunction(report).filter(({ holds }) => !holds)).toEqual([]);
});
