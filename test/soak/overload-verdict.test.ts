import { expect, test } from 'vitest';
import type { OverloadReport } from './overload.ts';
import { judgeFunction, judgeSpeed, recoveredAfterMs } from './overload-verdict.ts';
import type { Tally, Window } from './raw-load.ts';

const tally = (offered: number, ok: number, codes: Record<string, number> = {}, p99Ms = 5): Tally => ({
  ...{ offered, ok, codes, p99Ms },
  p50Ms: p99Ms / 2,
});
const windows = (...p99s: readonly (number | string)[]): Window[] =>
  p99s.map((p99, i) => {
    const each = typeof p99 === 'string' ? tally(10, 9, { [p99]: 1 }) : tally(10, 10, {}, p99);
    return { ...each, phase: 'after', atMs: 500 * i };
  });

/** A run of 10 s at a limit of 100 that went well. */
const good: OverloadReport = {
  options: { limit: 100, times: 10, seconds: 10, sessions: 3 },
  load: {
    phases: {
      before: tally(500, 500),
      during: tally(10_000, 990, { RESOURCE_EXHAUSTED: 9_005, UNKNOWN_OUTCOME: 5 }, 9),
      after: tally(500, 500),
    },
    windows: windows(90, 'RESOURCE_EXHAUSTED', 5, 5, 6, 5, 5),
  },
  holders: { sessions: 3, lost: [], stillHeld: 3, turns: 7, codes: { RESOURCE_EXHAUSTED: 2 } },
  applied: 1_993,
  gateway: { admitted: 2_050, refused: 9_100 },
};

test('a good run passes', () => {
  const judged = [...judgeFunction(good), ...judgeSpeed(good)];
  expect(judged.filter(({ holds }) => !holds)).toEqual([]);
});

type Phases = OverloadReport['load']['phases'];
const withDuring = (during: Tally): OverloadReport => {
  const phases: Phases = { ...good.load.phases, during };
  return { ...good, load: { ...good.load, phases } };
};
const bad: { readonly name: string; readonly report: OverloadReport; readonly fails: RegExp }[] = [
  {
    name: 'a session is lost',
    report: { ...good, holders: { ...good.holders, lost: ['session: expired'] } },
    fails: /session/,
  },
  { name: 'a lock is lost', report: { ...good, holders: { ...good.holders, stillHeld: 2 } }, fails: /session/ },
  { name: 'no lock goes round', report: { ...good, holders: { ...good.holders, turns: 0 } }, fails: /locks go round/ },
  { name: 'a refused put was applied', report: { ...good, applied: 1_996 }, fails: /refused changed nothing/ },
  { name: 'an acknowledged put is lost', report: { ...good, applied: 1_989 }, fails: /acknowledged is there/ },
  {
    name: 'what is refused is told otherwise',
    report: withDuring(tally(10_000, 990, { RESOURCE_EXHAUSTED: 9_009, UNAVAILABLE: 1 })),
    fails: /RESOURCE_EXHAUSTED/,
  },
  {
    name: 'many get no answer',
    report: withDuring(tally(10_000, 990, { RESOURCE_EXHAUSTED: 8_990, UNKNOWN_OUTCOME: 20 })),
    fails: /in time/,
  },
  { name: 'nothing is refused', report: withDuring(tally(10_000, 10_000)), fails: /RESOURCE_EXHAUSTED/ },
  {
    name: 'the gateway forgets refusals',
    report: { ...good, gateway: { admitted: 2_050, refused: 9_000 } },
    fails: /counts/,
  },
  {
    name: 'less was offered than meant',
    report: withDuring(tally(8_000, 990, { RESOURCE_EXHAUSTED: 7_010 })),
    fails: /offered/,
  },
  {
    name: 'goodput breaks down',
    report: withDuring(tally(10_000, 790, { RESOURCE_EXHAUSTED: 9_210 })),
    fails: /goodput/,
  },
  {
    name: 'the limit is no limit',
    report: withDuring(tally(10_000, 1_300, { RESOURCE_EXHAUSTED: 8_700 })),
    fails: /limit holds/,
  },
  {
    name: 'it stays slow',
    report: { ...good, load: { ...good.load, windows: windows(...Array(30).fill(60)) } },
    fails: /latency/,
  },
];
test.each(bad)('a run in which $name fails', ({ report, fails }) => {
  const failed = [...judgeFunction(report), ...judgeSpeed(report)].filter(({ holds }) => !holds);
  expect(failed.map(({ what }) => what).join('\n')).toMatch(fails);
});

test('it has recovered from the first window of several good ones', () => {
  const before = { p99Ms: 5 };
  expect(recoveredAfterMs(before, windows(5, 5, 5, 5))).toBe(0);
  expect(recoveredAfterMs(before, windows(5, 5, 60, 25, 25, 5, 5))).toBe(1_500);
  expect(recoveredAfterMs(before, windows(5, 'RESOURCE_EXHAUSTED', 5, 5, 5, 5))).toBe(1_000);
  expect(recoveredAfterMs(before, windows(5, 5, 5))).toBeUndefined();
  expect(recoveredAfterMs({ p99Ms: 100 }, windows(190, 190, 190, 190))).toBe(0);
});
