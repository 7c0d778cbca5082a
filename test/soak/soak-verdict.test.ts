import { expect, test } from 'vitest';
import type { Memory } from './memory.ts';
import type { Sample, SoakReport } from './soak.ts';
import { judgeSoak } from './soak-verdict.ts';

const MIB = 2 ** 20;

function memory(mib: number, descriptors = 40): Memory {
  return { rss: 300 * MIB, heapUsed: (mib * MIB) / 2, external: (mib * MIB) / 2, descriptors, handles: 9 };
}

function report(nodes: readonly Memory[], changed: Partial<SoakReport> = {}): SoakReport {
  const samples = nodes.flatMap((node, i): Sample[] => [
    {
      ...{ minutes: i, resting: false, operations: 900 * (i + 1), outcomes: 9_000 },
      memory: { n1: memory(900), clients: memory(90) },
    },
    {
      ...{ minutes: i + 1, resting: true, operations: 1_000 * (i + 1), outcomes: 10 },
      memory: { n1: node, clients: memory(20) },
    },
  ]);
  const options = { minutes: nodes.length, warmUpOperations: 1_000 };
  return { options, samples, done: { kv: 9_000 }, codes: { LEASE_NOT_FOUND: 3 }, ...changed };
}

const failures = (soak: SoakReport) =>
  judgeSoak(soak)
    .filter(({ holds }) => !holds)
    .map(({ what }) => what);

const flat = [100, 100, 100, 100, 100, 100].map((mib) => memory(mib));

test.each([
  { name: 'flat', nodes: flat },
  { name: 'like a saw', nodes: [100, 120, 110, 118, 101, 120].map((mib) => memory(mib)) },
  { name: 'growing by less than 5 %', nodes: [100, 101, 102, 103, 104, 105].map((mib) => memory(mib)) },
])('memory that is $name passes', ({ nodes }) => {
  expect(failures(report(nodes))).toEqual([]);
});

test('memory that grows, if only at the lowest points, fails', () => {
  const nodes = [100, 120, 110, 126, 106, 120].map((mib) => memory(mib));
  expect(failures(report(nodes))).toEqual(['n1: live memory grows by no more than 5 %']);
});

test('descriptors that are left behind fail', () => {
  const nodes = [40, 41, 43, 46, 48, 50].map((descriptors) => memory(100, descriptors));
  expect(failures(report(nodes))).toEqual(['n1: no descriptor is left behind']);
});

test('a load that is not served fails', () => {
  expect(failures(report(flat, { codes: { UNAVAILABLE: 91 } }))).toEqual([expect.stringMatching(/the load is served/)]);
  expect(failures(report(flat, { done: {} }))).toEqual([expect.stringMatching(/the load is served/)]);
});

test('a warm-up that was too short decides nothing', () => {
  const options = { minutes: 6, warmUpOperations: 1_001 };
  expect(failures(report(flat, { options }))).toEqual([expect.stringMatching(/the warm-up filled every cache/)]);
});
