import { afterEach, expect, test } from 'vitest';
import { HostBed } from '../../../test/support/host/host-bed.ts';

const GROUP = 2;
const NODES = [1, 2, 3];
/** A round trip to a follower that is near, and the step of the bed with which it is seen. */
const NEAR_MS = 3;
const REVIEW_MS = 2;
const HEARTBEAT_MS = 100;

let bed: HostBed | undefined;

afterEach(() => {
  expect(bed?.fatal() ?? []).toEqual([]);
  bed = undefined;
});

async function cluster(): Promise<{ b: HostBed; leader: number; followers: [number, number] }> {
  bed = new HostBed({ seed: 1, options: { appendReviewMs: REVIEW_MS } });
  for (const id of NODES) bed.start(id);
  bed.addGroup(GROUP, NODES);
  const leader = await bed.leader(GROUP);
  const [one = 0, two = 0] = NODES.filter((id) => id !== leader);
  return { b: bed, leader, followers: [one, two] };
}

function setDelay(b: HostBed, from: number, to: number, delayMs: number): void {
  b.network.setLink({ from, to }, { delayMs });
  b.network.setLink({ from: to, to: from }, { delayMs });
}

/** Writes one after the other for `ms`. Returns how long each took. */
async function writeFor(b: HostBed, ms: number): Promise<number[]> {
  const took: number[] = [];
  const until = b.clock.monotonicMs() + ms;
  while (b.clock.monotonicMs() < until) {
    const before = b.clock.monotonicMs();
    await b.write(GROUP, `at ${before}`);
    took.push(b.clock.monotonicMs() - before);
  }
  return took;
}

test('a leader settles on the follower that is near, and on the other one when that comes nearer', async () => {
  const { b, leader, followers } = await cluster();
  for (const [near, far] of [followers, followers.toReversed()]) {
    setDelay(b, leader, near ?? 0, 1);
    setDelay(b, leader, far ?? 0, 4);
    await writeFor(b, HEARTBEAT_MS);
    const before = b.node(leader).host.stats().appendsDelayed;
    const took = await writeFor(b, HEARTBEAT_MS);
    expect(Math.max(...took)).toBe(NEAR_MS);
    expect(b.node(leader).host.stats().appendsDelayed - before).toBeGreaterThan(took.length / 2);
  }
});

test('a follower that falls silent holds up one entry, for two reviews at most', async () => {
  const { b, leader, followers } = await cluster();
  const [one, two] = followers;
  setDelay(b, leader, two, 4);
  await writeFor(b, HEARTBEAT_MS);
  setDelay(b, leader, two, 1);
  for (const [from, to] of [
    [leader, one],
    [one, leader],
  ] as const) {
    b.network.setLink({ from, to }, { dropPerMille: 1000 });
  }
  const took = await writeFor(b, 3 * HEARTBEAT_MS);
  expect(took.filter((ms) => ms > NEAR_MS)).toHaveLength(1);
  expect(Math.max(...took)).toBeLessThanOrEqual(NEAR_MS + 2 * REVIEW_MS);
});
