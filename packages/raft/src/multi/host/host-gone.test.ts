import { afterEach, describe, expect, test } from 'vitest';
import { HostBed } from '../../../test/support/host/host-bed.ts';
import { HOST_DEFAULTS, type HostOptions, leaseLengthOf } from './options.ts';

const GROUP = 2;
const NODES = [1, 2, 3];
const ELECTION_MS = HOST_DEFAULTS.tickMs * HOST_DEFAULTS.electionTicks;

let bed: HostBed | undefined;
afterEach(() => {
  expect(bed?.fatal() ?? []).toEqual([]);
  bed = undefined;
});

async function led(seed: number, options: Partial<HostOptions> = {}): Promise<{ b: HostBed; leader: number }> {
  const b = new HostBed({ seed, options });
  bed = b;
  for (const id of NODES) b.start(id);
  b.addGroup(GROUP, NODES);
  const leader = await b.leader(GROUP);
  await b.run(300);
  return { b, leader };
}

const others = (node: number): number[] => NODES.filter((id) => id !== node);

/** Virtual time until another node leads. */
async function outageMs(b: HostBed, leader: number): Promise<number> {
  const fromMs = b.clock.monotonicMs();
  await b.until('another node leads', () => ![undefined, leader].includes(b.leaderOf(GROUP)));
  return b.clock.monotonicMs() - fromMs;
}

describe('a leader whose process ends (core/election.ts E8)', () => {
  test('is replaced long before an election timeout', async () => {
    for (let seed = 1; seed <= 10; seed++) {
      const { b, leader } = await led(seed);
      await b.crash(leader);
      b.nodes.delete(leader);
      expect(await outageMs(b, leader)).toBeLessThan(ELECTION_MS / 3);
    }
  });

  test('is replaced after an election timeout if it is only silent', async () => {
    const { b, leader } = await led(1);
    b.network.partition(others(leader), [leader]);
    const silentMs = ELECTION_MS - HOST_DEFAULTS.tickMs * (HOST_DEFAULTS.heartbeatTicks + 1);
    await b.run(silentMs);
    expect(others(leader).map((id) => b.group(id, GROUP).leader % 100)).toEqual([leader, leader]);
  });

  test('is not replaced if one follower alone believes it, although the leader lives', async () => {
    const { b, leader } = await led(1);
    const [wrong = 0] = others(leader);
    const { term } = b.group(leader, GROUP);
    for (const [from, to] of [
      [wrong, leader],
      [leader, wrong],
    ] as const)
      b.network.setLink({ from, to }, { refuses: true });
    await b.run(3 * ELECTION_MS);
    expect([b.leaderOf(GROUP), b.group(leader, GROUP).term]).toEqual([leader, term]);
  });

  test('keeps the promises made to it if leases rest on them (core/lease.ts E8)', async () => {
    const options = { leaseReads: true };
    const { b, leader } = await led(1, options);
    for (const id of others(leader)) {
      for (const [from, to] of [
        [id, leader],
        [leader, id],
      ] as const)
        b.network.setLink({ from, to }, { refuses: true });
    }
    const leaseMs = leaseLengthOf({ ...HOST_DEFAULTS, ...options });
    for (let ms = 0; ms < leaseMs; ms++) {
      await b.run(1);
      const rivals = others(leader).filter((id) => b.group(id, GROUP).role === 'leader');
      expect([rivals, ms]).toEqual([[], ms]);
    }
  });
});
