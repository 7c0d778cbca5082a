import { beforeAll, expect, test } from 'vitest';
import { type AttackReport, runAttack } from './attack.ts';
import { judgeFunction } from './attack-verdict.ts';

/** The short form of `pnpm attack`: what it promises, but for the speed of the machine. */
let report: AttackReport;

beforeAll(async () => {
  report = await runAttack({ connections: 1_000, seconds: 8 });
});

test('a thousand attackers with unfinished input neither take memory nor keep clients and probes from their answers', () => {
  expect(judgeFunction(report).filter(({ holds }) => !holds)).toEqual([]);
});
