import { expect, test } from 'vitest';
import type { AttackReport, Sample } from './attack.ts';
import { judgeFunction, judgeSpeed } from './attack-verdict.ts';

const MIB = 1 << 20;
const sample = (changes: Partial<Sample> = {}): Sample => ({
  unfinishedBytes: { client: 60 * MIB, peer: MIB, http: 8 * MIB },
  unreadBytes: {},
  residentBytes: 400 * MIB,
  turnMs: 20,
  ...changes,
});
const door = { door: 'SDK', calls: 10, failures: [], longestMs: 90 };

/** A run that went well. */
const good: AttackReport = {
  options: { connections: 1_000, seconds: 10 },
  kinds: [{ kind: 'client: silence', opened: 40, closed: 3 }],
  bystanders: { doors: [door, { ...door, door: 'HTTP' }], isLockHeld: true },
  health: { longestMs: 300, probes: 30, failures: [] },
  before: sample({ residentBytes: 200 * MIB }),
  during: [sample(), sample()],
};

test('a good run passes', () => {
  expect([...judgeFunction(good), ...judgeSpeed(good)].filter(({ holds }) => !holds)).toEqual([]);
});

const { bystanders, health } = good;
test.each<{ name: string; report: Partial<AttackReport>; fails: RegExp }>([
  { name: 'a kind was not tried', report: { kinds: [{ kind: 'x', opened: 0, closed: 0 }] }, fails: /every kind/ },
  {
    name: 'a port holds more than its budget once',
    report: { during: [sample(), sample({ unfinishedBytes: { client: 65 * MIB, peer: 0, http: 0 } }), sample()] },
    fails: /client port/,
  },
  {
    name: 'a port does not say what it holds',
    report: { during: [sample({ unfinishedBytes: { client: 1, http: 1 } })] },
    fails: /peer port/,
  },
  { name: 'memory grows', report: { during: [sample({ residentBytes: 900 * MIB })] }, fails: /memory/ },
  {
    name: 'a call fails',
    report: { bystanders: { ...bystanders, doors: [{ ...door, failures: ['UNAVAILABLE'] }] } },
    fails: /clients that have a connection/,
  },
  {
    name: 'a door is never used',
    report: { bystanders: { ...bystanders, doors: [{ ...door, calls: 0 }] } },
    fails: /clients that have a connection/,
  },
  { name: 'the lock is lost', report: { bystanders: { ...bystanders, isLockHeld: false } }, fails: /lock/ },
  { name: 'a probe fails', report: { health: { ...health, failures: ['status 503'] } }, fails: /all the time/ },
  { name: 'nothing was probed', report: { health: { ...health, probes: 0 } }, fails: /all the time/ },
  { name: 'a probe is late', report: { health: { ...health, longestMs: 1_001 } }, fails: /within a second/ },
])('a run in which $name fails', ({ report, fails }) => {
  const judged = [...judgeFunction({ ...good, ...report }), ...judgeSpeed({ ...good, ...report })];
  const failed = judged.filter(({ holds }) => !holds);
  expect(failed.map(({ what }) => what).join('\n')).toMatch(fails);
});
