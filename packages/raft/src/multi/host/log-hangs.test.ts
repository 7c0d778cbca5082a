/**
 * A disk that neither takes a write nor says that it failed: what a dying device, or one behind a network, does for
 * minutes.
 */
import { afterEach, expect, test } from 'vitest';
import { HostBed } from '../../../test/support/host/host-bed.ts';

const GROUPS = [2, 3];
const NODES = [1, 2, 3];
const NEVER_MS = 10 ** 9;

let bed: HostBed | undefined;

afterEach(() => {
  expect(bed?.fatal() ?? []).toEqual([]);
  bed = undefined;
});

async function cluster(): Promise<{ b: HostBed; leader: number }> {
  bed = new HostBed({ seed: 1, options: { logStallTicks: 120 } });
  for (const id of NODES) bed.start(id);
  for (const group of GROUPS) bed.addGroup(group, NODES);
  for (const group of GROUPS) await bed.write(group, 'before');
  const leader = await bed.leader(2);
  bed.group(await bed.leader(3), 3).transferLeader(300 + leader);
  await bed.until('one node leads both', () => bed?.leaderOf(3) === leader);
  return { b: bed, leader };
}

test('a leader whose log hangs hands over to those whose does not', async () => {
  const { b, leader } = await cluster();
  b.node(leader).log.syncMs = NEVER_MS;
  b.group(leader, 2).propose(Buffer.from('hangs'));
  await b.run(1_000);
  b.node(leader).log.full = true; // others wrote as much as may wait
  expect(GROUPS.map((group) => b.leaderOf(group))).toEqual([leader, leader]);
  await b.run(6_000);
  for (const group of GROUPS) {
    expect(b.leaderOf(group)).not.toBe(leader);
    await b.write(group, 'after');
  }
  expect(b.counter(await b.leader(2), 2).history).toEqual(['before', 'hangs', 'after']);
});

test('a log that is slow, and gets on, keeps its leaders', async () => {
  const { b, leader } = await cluster();
  b.node(leader).log.syncMs = 2_000;
  for (let i = 0; i < 20; i++) {
    b.group(leader, 2).propose(Buffer.from(String(i)));
    await b.run(500);
  }
  expect(GROUPS.map((group) => b.leaderOf(group))).toEqual([leader, leader]);
});
