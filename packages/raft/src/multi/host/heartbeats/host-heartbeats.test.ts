import { afterEach, describe, expect, test } from 'vitest';
import { HostBed, replicaOn } from '../../../../test/support/host/host-bed.ts';
import { HeartbeatEncoder } from '../../transport/heartbeat-codec.ts';
import { HOST_DEFAULTS } from '../options.ts';
import type { HostStats } from '../stats.ts';

const GROUP = 2;
const NODES = [1, 2, 3];
const BEAT_MS = HOST_DEFAULTS.tickMs * HOST_DEFAULTS.heartbeatTicks;
const ELECTION_MS = HOST_DEFAULTS.tickMs * HOST_DEFAULTS.electionTicks;

let bed: HostBed | undefined;

function three(given: Partial<ConstructorParameters<typeof HostBed>[0]> = {}): HostBed {
  const made = new HostBed({ seed: 1, ...given });
  for (const id of NODES) made.start(id);
  bed = made;
  return made;
}

afterEach(() => {
  expect(bed?.fatal() ?? []).toEqual([]);
  bed = undefined;
});

const others = (node: number): number[] => NODES.filter((id) => id !== node);

/** Lets groups settle until nothing but merged heartbeats is sent. */
async function idle(b: HostBed): Promise<void> {
  for (;;) {
    const before = sum(b, 'messagesSent');
    await b.run(3 * BEAT_MS);
    if (sum(b, 'messagesSent') === before) return;
  }
}

function sum(b: HostBed, counter: keyof HostStats): number {
  return NODES.reduce((total, id) => total + (b.nodes.get(id)?.host.stats()[counter] ?? 0), 0);
}

/** What all nodes send in `ms`, by kind. */
async function traffic(b: HostBed, ms: number): Promise<{ heartbeats: number; replies: number; messages: number }> {
  const counters = ['heartbeatsSent', 'heartbeatRepliesSent', 'messagesSent'] as const;
  const before = counters.map((counter) => sum(b, counter));
  await b.run(ms);
  const [heartbeats = 0, replies = 0, messages = 0] = counters.map((counter, i) => sum(b, counter) - (before[i] ?? 0));
  return { heartbeats, replies, messages };
}

/** Groups from 2 on, all led by node 1. */
async function groupsLedBy(b: HostBed, leader: number, count: number): Promise<void> {
  const groups = Array.from({ length: count }, (_, i) => 2 + i);
  for (const groupId of groups) b.addGroup(groupId, NODES, NODES, (node) => (node === leader ? 2 : 40));
  for (const groupId of groups) await b.until('it leads', () => b.leaderOf(groupId) === leader);
  await idle(b);
}

describe('merged heartbeats', () => {
  test('idle: 1,000 groups cost as many heartbeat messages as one, under two bytes per group, and nothing else', async () => {
    const alone = three();
    await groupsLedBy(alone, 1, 1);
    const one = await traffic(alone, 2000);
    const b = three();
    await groupsLedBy(b, 1, 1000);
    const many = await traffic(b, 2000);
    expect(one).toEqual({ heartbeats: 2 * (2000 / BEAT_MS), replies: 2 * (2000 / BEAT_MS), messages: 0 });
    expect(Math.abs(many.heartbeats + many.replies - one.heartbeats - one.replies)).toBeLessThanOrEqual(2);
    expect(many.messages).toBe(0);
    const groups = Array.from({ length: 1000 }, (_, i) => 2 + i);
    const bootId = Number.MAX_SAFE_INTEGER;
    const frame = new HeartbeatEncoder().encode({ type: 'heartbeat', bootId, sequence: 1_000_000, groups });
    expect(frame.length / 1000).toBeLessThan(2);
    for (const groupId of [2, 500, 1001]) expect(b.group(1, groupId).term).toBe(1);
  });

  test('with leaders everywhere each ordered pair of nodes exchanges one heartbeat and one reply per interval', async () => {
    const b = three();
    for (let groupId = 2; groupId < 32; groupId++) b.addGroup(groupId, NODES);
    for (let groupId = 2; groupId < 32; groupId++) await b.leader(groupId);
    await idle(b);
    expect(await traffic(b, 1000)).toEqual({ heartbeats: 60, replies: 60, messages: 0 });
  });

  test('an idle follower learns the last commit within three intervals', async () => {
    const b = three();
    await groupsLedBy(b, 1, 1);
    const position = b.group(1, GROUP).propose(Buffer.from('last'));
    const index = 'index' in position ? position.index : 0;
    await b.run(20);
    expect(b.group(2, GROUP).status().commit).toBeLessThan(index);
    await b.run(3 * BEAT_MS);
    for (const id of others(1)) expect(b.group(id, GROUP).status()).toMatchObject({ commit: index, applied: index });
    expect(await traffic(b, 1000)).toMatchObject({ messages: 0 });
  });

  test('an idle cluster keeps its leaders, over many election timeouts', async () => {
    const b = three();
    await groupsLedBy(b, 1, 20);
    await b.run(20 * ELECTION_MS);
    for (let groupId = 2; groupId < 22; groupId++) {
      expect(b.group(1, groupId)).toMatchObject({ role: 'leader', term: 1 });
    }
  });

  test('a restarted follower refuses, gets full messages, and is in merged heartbeats again', async () => {
    const b = three();
    await groupsLedBy(b, 1, 3);
    await b.write(GROUP, 'a');
    await b.crash(2);
    b.start(2);
    await b.run(2 * ELECTION_MS);
    await idle(b);
    expect(b.node(2).host.stats().heartbeatsRefused).toBeGreaterThan(0);
    expect(b.counter(2, GROUP).history).toEqual(['a']);
    const { heartbeatsReceived } = b.node(2).host.stats();
    expect(await traffic(b, 1000)).toEqual({ heartbeats: 20, replies: 20, messages: 0 });
    expect(b.node(2).host.stats().heartbeatsReceived - heartbeatsReceived).toBe(10);
    for (const groupId of [2, 3, 4]) expect(b.group(1, groupId)).toMatchObject({ role: 'leader', term: 1 });
  });

  test('a restarted leader is followed no longer, and a new one is', async () => {
    const b = three();
    await groupsLedBy(b, 1, 3);
    await b.crash(1);
    b.start(1);
    for (const groupId of [2, 3, 4]) {
      await b.until('it has a leader of a new term', () => {
        const leader = b.leaderOf(groupId);
        return leader !== undefined && b.group(leader, groupId).term > 1;
      });
    }
    await idle(b);
    const { messages } = await traffic(b, 1000);
    expect(messages).toBe(0);
  });

  test('a node that removed its replica refuses, and its leader goes on with full messages', async () => {
    const unknown: number[] = [];
    const b = three({ extra: { onUnknownGroup: (_from, { groupId }) => unknown.push(groupId) } });
    await groupsLedBy(b, 1, 2);
    await b.removeGroup(3, GROUP);
    await b.run(3 * BEAT_MS);
    expect(b.node(3).host.stats().heartbeatsRefused).toBe(1);
    expect(unknown.length).toBeGreaterThan(1);
    expect(
      b
        .group(1, GROUP)
        .status()
        .progress.find(({ replica }) => replica === replicaOn(GROUP, 3))?.state,
    ).toBe('probe');
    expect(b.group(1, GROUP).role).toBe('leader');
  });

  test('a leader that the majority cannot hear steps down, although its own heartbeats arrive', async () => {
    const b = three();
    await groupsLedBy(b, 1, 2);
    for (const from of others(1)) b.network.setLink({ from, to: 1 }, { blocked: true });
    await b.run(3 * ELECTION_MS);
    expect(b.group(1, GROUP).role).not.toBe('leader');
  });

  test('late heartbeats of a leader that was replaced are refused', async () => {
    const b = three();
    await groupsLedBy(b, 1, 1);
    for (const to of others(1)) b.network.setLink({ from: 1, to }, { delayMs: 3 * ELECTION_MS });
    await b.until('another leads', () => (b.leaderOf(GROUP) ?? 1) !== 1);
    const follower = others(1).find((id) => b.group(id, GROUP).role === 'follower') ?? 0;
    const { heartbeatsRefused } = b.node(follower).host.stats();
    await b.run(3 * ELECTION_MS);
    expect(b.node(follower).host.stats().heartbeatsRefused).toBeGreaterThan(heartbeatsRefused);
  });

  test('after a transfer the old leader is not followed any more, and heartbeats come from the new one', async () => {
    const b = three();
    await groupsLedBy(b, 1, 2);
    b.group(1, GROUP).transferLeader(replicaOn(GROUP, 2));
    await b.until('it leads', () => b.leaderOf(GROUP) === 2);
    await idle(b);
    expect(await traffic(b, 1000)).toEqual({ heartbeats: 40, replies: 40, messages: 0 }); // 1 and 2 lead a group each
    expect(b.group(2, GROUP).term).toBe(2);
  });

  test.each([1, 2, 3])('lost, repeated and overtaken frames and replies depose nobody (seed %i)', async (seed) => {
    const b = three({
      seed,
      faults: { dropPerMille: 100, duplicatePerMille: 200, delayMs: 1, jitterMs: 150, reorder: true },
    });
    for (let groupId = 2; groupId < 12; groupId++) b.addGroup(groupId, NODES);
    for (let groupId = 2; groupId < 12; groupId++) await b.leader(groupId);
    await b.run(2000);
    const terms = (): number[] => Array.from({ length: 10 }, (_, i) => b.group(1, 2 + i).term);
    const before = terms();
    await b.run(10 * ELECTION_MS);
    expect(terms()).toEqual(before);
  });

  test('heartbeats go out while a state machine holds up its group and its queue is full', async () => {
    const b = three({ options: { maxUncommittedBytes: 2000 } });
    await groupsLedBy(b, 1, 2);
    b.counter(1, GROUP).gate = new Promise(() => undefined);
    b.network.setLink({ from: 2, to: 1 }, { blocked: true }); // and nothing commits
    b.network.setLink({ from: 3, to: 1 }, { blocked: true });
    while (!('refused' in b.group(1, GROUP).propose(Buffer.alloc(100))));
    const { heartbeats } = await traffic(b, 3 * BEAT_MS);
    expect(heartbeats).toBe(6);
  });
});
