// Merged heartbeats: design §5 ▸.
import { describe, expect, test } from 'vitest';
import { type HeartbeatSender, Heartbeats, type SteadyFollower } from '../../src/multi/host/heartbeats/heartbeats.ts';
import type { HeartbeatFrame } from '../../src/multi/ports.ts';
import {
  ack,
  ELECTION_TICKS,
  HEARTBEAT_TICKS,
  heartbeat,
  makeCore,
  makeLeader,
  ofType,
  progressOf,
  propose,
  run,
  tick,
} from '../support/core/core-kit.ts';

const NOW = { monotonicMs: 0, wallMs: 0 };
const steady = (core: ReturnType<typeof makeCore>) => core.steadyFollowers().map(({ replica }) => replica);
const epochOf = (core: ReturnType<typeof makeCore>, replica: number) =>
  core.steadyFollowers().find((follower) => follower.replica === replica)?.epoch ?? 0;

describe('a range is in the frame only while', () => {
  test('design §5 ▸: the follower has acknowledged an append in the current term', () => {
    const core = makeLeader({ silent: [3] });
    expect(steady(core)).toEqual([2]);
    core.step({ type: 'heartbeatResponse', from: 3, to: 1, term: core.term, commit: 0, readContext: 0 });
    expect(steady(core)).toEqual([2]);
    ack(core, 3);
    expect(steady(core)).toEqual([2, 3]);
  });

  test('design §5 ▸: nothing says that it may have stopped following', () => {
    const core = makeLeader();
    const before = epochOf(core, 2);
    core.reportUnreachable(2);
    expect(steady(core)).toEqual([3]);
    ack(core, 2);
    expect(epochOf(core, 2)).toBeGreaterThan(before); // another stretch, under another name
  });
});

class Sender implements HeartbeatSender {
  readonly groupId: number;
  readonly told: string[] = [];

  constructor(groupId: number) {
    this.groupId = groupId;
  }

  heartbeatAnswered({ epoch }: SteadyFollower): void {
    this.told.push(`answered ${epoch}`);
  }

  heartbeatRefused({ epoch }: SteadyFollower): void {
    this.told.push(`refused ${epoch}`);
  }
}

const reply = (sequence: number, replierBootId = 22): HeartbeatFrame => {
  return { type: 'reply', bootId: 11, sequence, replierBootId, refused: [] };
};

describe('a reply counts for a range only if', () => {
  function sending() {
    const frames: HeartbeatFrame[] = [];
    const heartbeats = new Heartbeats({
      bootId: 11,
      send: (_, frame) => frames.push(frame),
      begun: () => undefined,
      receiver: () => undefined,
    });
    return { heartbeats, frames };
  }

  test('design §5 ▸: the range was in the frame that it answers', () => {
    const { heartbeats } = sending();
    const [early, late] = [new Sender(2), new Sender(3)];
    heartbeats.add(early, { replica: 202, epoch: 1, node: 2 });
    heartbeats.beat(NOW);
    heartbeats.add(late, { replica: 302, epoch: 2, node: 2 });
    heartbeats.beat(NOW);
    heartbeats.receive(2, reply(1));
    expect([early.told, late.told]).toEqual([['answered 1'], []]);
  });

  test('design §5 ▸: the follower has been steady ever since, in the same term', () => {
    const core = makeLeader({ silent: [3] });
    const before = epochOf(core, 2);
    core.reportUnreachable(2);
    ack(core, 2);
    tick(core, ELECTION_TICKS); // forgets who was heard
    core.heartbeatAnsweredBy(2, before);
    expect(progressOf(core, 2)?.active).toBe(false);
    core.heartbeatAnsweredBy(2, epochOf(core, 2));
    expect(progressOf(core, 2)?.active).toBe(true);
  });

  test('design §5: it comes from the process that answered before', () => {
    const { heartbeats } = sending();
    const sender = new Sender(2);
    heartbeats.add(sender, { replica: 202, epoch: 1, node: 2 });
    for (let i = 0; i < 2; i++) heartbeats.beat(NOW);
    heartbeats.receive(2, reply(1));
    heartbeats.receive(2, reply(2, 23));
    expect(sender.told).toEqual(['answered 1', 'refused 1']);
  });
});

describe('a follower', () => {
  test('design §5 ▸: accepts only from the leader of its current term', () => {
    const core = makeCore();
    heartbeat(core, 2, 1);
    run(core);
    expect([core.heartbeatFrom(2), core.heartbeatFrom(3)]).toEqual([true, false]);
    heartbeat(core, 3, 2);
    run(core);
    expect([core.heartbeatFrom(2), core.heartbeatFrom(3)]).toEqual([false, true]);
    core.step({ type: 'preVoteResponse', from: 2, to: 1, term: 3, reject: true }); // a newer term, no leader known
    expect([core.heartbeatFrom(3), core.heartbeatFrom(0)]).toEqual([false, false]);
  });

  test('design §5: that is idle learns the last commit by an empty append, as merged heartbeats carry none', () => {
    const core = makeLeader();
    for (const to of [2, 3]) core.mergeHeartbeats(to, epochOf(core, to), true);
    propose(core, 'a');
    run(core);
    for (const from of [2, 3]) ack(core, from, 2, 1); // acknowledged before the commit
    run(core);
    expect(core.commit).toBe(2);
    const sent = [];
    for (let i = 0; i < 2 * HEARTBEAT_TICKS; i++) {
      core.tick();
      sent.push(...run(core));
    }
    expect(ofType(sent, 'heartbeat')).toEqual([]);
    expect(ofType(sent, 'append')).toMatchObject([
      { to: 2, commit: 2, entries: [] },
      { to: 3, commit: 2, entries: [] },
    ]);
  });
});
