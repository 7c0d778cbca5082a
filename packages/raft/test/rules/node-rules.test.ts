// Snapshots (traps 3 and 9), and what a node does with replica ids and with silence (traps 10 and 11).
import { describe, expect, test } from 'vitest';
import { confOf } from '../../src/core/membership/membership.ts';
import type { Message } from '../../src/core/types.ts';
import { LogTail } from '../../src/multi/host/group/log-tail.ts';
import { append, ELECTION_TICKS, entries, makeCore, run, take, tick } from '../support/core/core-kit.ts';
import { HostBed, replicaOn } from '../support/host/host-bed.ts';

const meta = { index: 10, term: 2, conf: confOf([1, 2, 3]) };

describe('installing', () => {
  test('trap 9: is serial: while a snapshot is received, a second one is declined', () => {
    const core = makeCore();
    expect(core.acceptsSnapshot(2, 2, meta)).toBe(true);
    expect(core.acceptsSnapshot(2, 2, { ...meta, index: 12 })).toBe(false);
    core.installed(meta);
    run(core);
    expect(core.acceptsSnapshot(2, 2, { ...meta, index: 12 })).toBe(true);
  });

  test('trap 9: is idempotent: a snapshot of what is held is acknowledged, not installed again', () => {
    const core = makeCore();
    expect(core.acceptsSnapshot(2, 2, meta)).toBe(true);
    core.installed(meta);
    run(core);
    expect(core.acceptsSnapshot(2, 2, meta)).toBe(false);
    expect(run(core)).toMatchObject([{ type: 'appendResponse', to: 2, reject: false, index: 10 }]);
  });

  test('trap 9: while a snapshot is received, nothing is appended, acknowledged, handed out or campaigned for', () => {
    const core = makeCore();
    append(core, { term: 2, prev: [0, 0], entries: entries(1, 2) });
    run(core);
    core.acceptsSnapshot(2, 2, meta);
    append(core, { term: 2, prev: [1, 2], entries: entries(2, 2), commit: 2 });
    const { messages, committed } = take(core);
    expect([messages, committed, core.status().lastIndex]).toEqual([[], [], 1]);
    tick(core, 4 * ELECTION_TICKS);
    expect(core.role).toBe('follower');
  });

  test('trap 8: a restart at a snapshot is acknowledged only when it is durable', () => {
    const core = makeCore();
    core.acceptsSnapshot(2, 2, meta);
    run(core);
    core.installed(meta);
    const { messages, marks } = take(core);
    expect(messages).toEqual([]);
    for (const mark of marks) core.persisted(mark);
    expect(run(core)).toMatchObject([{ type: 'appendResponse', reject: false, index: 10 }]);
  });
});

describe('the log of a sender', () => {
  test('trap 3: is not cut while a snapshot that builds on it is under way', () => {
    const tail = new LogTail({ entries: 0, bytes: 0 }, { index: 0, term: 0 });
    for (let index = 1; index <= 20; index++) tail.advance({ index, term: 1 }, 10);
    const hold = tail.hold(5);
    tail.checkpointed({ index: 20, term: 1 });
    expect(tail.takeCompaction(0)?.index ?? 0).toBeLessThanOrEqual(5);
    hold.untilMs = 100;
    expect(tail.takeCompaction(99)?.index ?? 0).toBeLessThanOrEqual(5);
    expect(tail.takeCompaction(100)?.index).toBe(20);
  });
});

describe('a node', () => {
  test('trap 11: tells of a replica that hears no leader for long, again and again, and of no other', async () => {
    const silent: number[] = [];
    const options = { silenceTicks: 40 };
    const bed = new HostBed({ seed: 1, options, extra: { onSilence: ({ replicaId }) => silent.push(replicaId) } });
    for (const id of [1, 2, 3]) bed.start(id);
    bed.addGroup(2, [1, 2, 3]);
    await bed.leader(2);
    await bed.run(5_000);
    expect(silent).toEqual([]);
    const leader = await bed.leader(2);
    const [removed = 0] = [1, 2, 3].filter((id) => id !== leader);
    bed.network.partition(
      [1, 2, 3].filter((id) => id !== removed),
      [removed],
    ); // removed meanwhile, say
    await bed.run(5_000);
    expect(silent.length).toBeGreaterThan(1);
    expect(new Set(silent)).toEqual(new Set([replicaOn(2, removed)]));
  });

  test('trap 10: takes no message for a replica of the group that it does not hold, and says so', async () => {
    const unknown: Message[] = [];
    const bed = new HostBed({ seed: 1, extra: { onUnknownGroup: (_, { message }) => unknown.push(message) } });
    for (const id of [1, 2, 3]) bed.start(id);
    bed.addGroup(2, [1, 2, 3]);
    const leader = await bed.leader(2);
    const { term } = bed.group(leader, 2);
    const target = leader === 1 ? 2 : 1;
    const from = bed.network.transport(9);
    from.start({
      onMessages: () => {},
      onHeartbeat: () => {},
      onSnapshot: () => Promise.reject(),
      onUnreachable: () => {},
      onGone: () => {},
    });
    const vote = { type: 'vote', from: 299, term: term + 5, lastIndex: 99, lastTerm: 99, force: true } as const;
    from.send(target, [{ groupId: 2, message: { ...vote, to: replicaOn(2, target) + 50 } }]); // an id gone by
    await bed.run(50);
    expect(bed.group(target, 2).term).toBe(term);
    expect(unknown).toMatchObject([{ type: 'vote', to: replicaOn(2, target) + 50 }]);
  });
});
