import { describe, expect, test } from 'vitest';
import type { HeartbeatFrame, NodeId } from '../../ports.ts';
import { type HeartbeatReceiver, type HeartbeatSender, Heartbeats, type SteadyFollower } from './heartbeats.ts';

const at = (ms: number) => ({ monotonicMs: ms, wallMs: ms });
const follower = (replica: number, node: NodeId, epoch = 1): SteadyFollower => ({ replica, epoch, node });

/** A group that this node leads, and what it was told. */
class Sender implements HeartbeatSender {
  readonly groupId: number;
  readonly told: string[] = [];

  constructor(groupId: number) {
    this.groupId = groupId;
  }

  heartbeatAnswered({ replica, epoch }: SteadyFollower, sent: { readonly monotonicMs: number }): void {
    this.told.push(`${replica}/${epoch} answered ${sent.monotonicMs}`);
  }

  heartbeatRefused({ replica, epoch }: SteadyFollower): void {
    this.told.push(`${replica}/${epoch} refused`);
  }
}

function node(bootId: number, groups: Record<number, HeartbeatReceiver> = {}) {
  const sent: { readonly to: NodeId; readonly frame: HeartbeatFrame }[] = [];
  let begun = 0;
  const heartbeats = new Heartbeats({
    bootId,
    send: (to, frame) => sent.push({ to, frame }),
    begun: () => begun++,
    receiver: (groupId) => groups[groupId],
  });
  return { heartbeats, sent, take: () => sent.splice(0), begun: () => begun };
}

function replica(leaderAt: NodeId, term = 3): HeartbeatReceiver & { heard: number } {
  return {
    term,
    heard: 0,
    heartbeatFrom(from) {
      if (from === leaderAt) this.heard++;
      return from === leaderAt;
    },
  };
}

const reply = (sequence: number, more: Partial<Extract<HeartbeatFrame, { type: 'reply' }>> = {}): HeartbeatFrame => {
  return { type: 'reply', bootId: 11, sequence, replierBootId: 22, refused: [], ...more };
};

describe('heartbeats to a peer', () => {
  test('the host is told when there is something to send again', () => {
    const { heartbeats, begun } = node(11);
    const [sender, peer] = [new Sender(9), follower(902, 2)];
    expect([heartbeats.isSending, begun()]).toEqual([false, 0]);
    heartbeats.add(sender, peer);
    heartbeats.add(new Sender(5), follower(502, 3));
    expect([heartbeats.isSending, begun()]).toEqual([true, 1]);
    heartbeats.remove(sender, peer);
    heartbeats.remove(new Sender(5), follower(502, 3));
    expect(heartbeats.isSending).toBe(true); // another follower
    const other = node(12);
    other.heartbeats.add(sender, peer);
    other.heartbeats.remove(sender, peer);
    expect(other.heartbeats.isSending).toBe(false);
    other.heartbeats.add(sender, peer);
    expect(other.begun()).toBe(2);
  });

  test('all groups share one frame per peer, sorted; the list is the same object while nothing changes', () => {
    const { heartbeats, take } = node(11);
    for (const groupId of [9, 2, 5]) heartbeats.add(new Sender(groupId), follower(groupId * 100 + 2, 2));
    heartbeats.add(new Sender(7), follower(703, 3));
    heartbeats.beat(at(0));
    const first = take();
    expect(first).toEqual([
      { to: 2, frame: { type: 'heartbeat', bootId: 11, sequence: 1, groups: [2, 5, 9] } },
      { to: 3, frame: { type: 'heartbeat', bootId: 11, sequence: 1, groups: [7] } },
    ]);
    heartbeats.beat(at(100));
    const second = take();
    expect(second[0]?.frame).toMatchObject({ sequence: 2, groups: [2, 5, 9] });
    expect(second[0]?.frame.type === 'heartbeat' && second[0].frame.groups).toBe(
      first[0]?.frame.type === 'heartbeat' && first[0].frame.groups,
    );
  });

  test('a peer with no steady follower gets none', () => {
    const { heartbeats, take } = node(11);
    const sender = new Sender(2);
    const member = follower(202, 2);
    heartbeats.add(sender, member);
    heartbeats.remove(sender, member);
    heartbeats.beat(at(0));
    expect(take()).toEqual([]);
  });

  test('an answer counts for every group in the frame, from the time the frame was sent, and an exception for its own', () => {
    const { heartbeats } = node(11);
    const [two, five] = [new Sender(2), new Sender(5)];
    heartbeats.add(two, follower(202, 2));
    heartbeats.add(five, follower(502, 2));
    heartbeats.beat(at(1000));
    heartbeats.beat(at(1100));
    heartbeats.receive(2, reply(1, { refused: [{ groupId: 5, reason: 'noReplica', term: 0 }] }));
    expect(two.told).toEqual(['202/1 answered 1000']);
    expect(five.told).toEqual(['502/1 refused']);
  });

  test('an answer to a frame that did not name the group counts for nothing', () => {
    const { heartbeats } = node(11);
    const [two, five] = [new Sender(2), new Sender(5)];
    heartbeats.add(two, follower(202, 2));
    heartbeats.beat(at(0));
    heartbeats.add(five, follower(502, 2)); // steady only after frame 1
    heartbeats.beat(at(100));
    heartbeats.receive(2, reply(1));
    expect(two.told).toEqual(['202/1 answered 0']);
    expect(five.told).toEqual([]);
    heartbeats.receive(2, reply(2));
    expect(five.told).toEqual(['502/1 answered 100']);
  });

  test('an answer to a frame from before the present stretch of steadiness counts for nothing', () => {
    const { heartbeats } = node(11);
    const sender = new Sender(2);
    const before = follower(202, 2, 1);
    heartbeats.add(sender, before);
    heartbeats.beat(at(0));
    heartbeats.remove(sender, before); // another term, or messages were lost
    heartbeats.add(sender, follower(202, 2, 5));
    heartbeats.receive(2, reply(1));
    expect(sender.told).toEqual([]);
  });

  test.each<{ name: string; frame: HeartbeatFrame }>([
    { name: 'an earlier process of this node', frame: reply(1, { bootId: 10 }) },
    { name: 'a frame that was not sent', frame: reply(3) },
    { name: 'a frame of long ago', frame: reply(1) },
  ])('an answer to $name counts for nothing', ({ name, frame }) => {
    const { heartbeats } = node(11);
    const sender = new Sender(2);
    heartbeats.add(sender, follower(202, 2));
    const beats = name.includes('long ago') ? 100 : 2;
    for (let i = 0; i < beats; i++) heartbeats.beat(at(i));
    heartbeats.receive(2, frame);
    expect(sender.told).toEqual([]);
  });

  test('the first answer of another process of the peer ends the steadiness of all groups there, and counts for nothing', () => {
    const { heartbeats } = node(11);
    const [two, five] = [new Sender(2), new Sender(5)];
    heartbeats.add(two, follower(202, 2));
    heartbeats.add(five, follower(502, 2));
    for (let i = 1; i <= 3; i++) heartbeats.beat(at(i));
    heartbeats.receive(2, reply(1));
    heartbeats.receive(2, reply(2, { replierBootId: 23 }));
    expect(two.told).toEqual(['202/1 answered 1', '202/1 refused']);
    expect(five.told).toEqual(['502/1 answered 1', '502/1 refused']);
  });

  test('answers of one peer count for its own replicas only', () => {
    const { heartbeats } = node(11);
    const sender = new Sender(2);
    heartbeats.add(sender, follower(202, 2));
    heartbeats.add(sender, follower(203, 3));
    heartbeats.beat(at(7));
    heartbeats.receive(3, reply(1));
    heartbeats.receive(4, reply(1));
    expect(sender.told).toEqual(['203/1 answered 7']);
  });

  test('a node never speaks for two replicas of a group', () => {
    const { heartbeats, take } = node(11);
    const sender = new Sender(2);
    expect(heartbeats.add(sender, follower(202, 2, 1))).toBe(true);
    expect(heartbeats.add(sender, follower(252, 2, 2))).toBe(false);
    heartbeats.remove(sender, follower(252, 2, 2));
    heartbeats.beat(at(0));
    expect(take()).toHaveLength(1);
  });
});

describe('heartbeats from a peer', () => {
  const beat = (sequence: number, groups: readonly number[], bootId = 11): HeartbeatFrame => {
    return { type: 'heartbeat', bootId, sequence, groups };
  };

  test('are given to every replica named, and answered with the exceptions only', () => {
    const [two, five] = [replica(1), replica(3, 8)];
    const { heartbeats, take } = node(22, { 2: two, 5: five });
    heartbeats.receive(1, beat(1, [2, 5, 9]));
    expect(two.heard).toBe(1);
    expect(take()).toEqual([
      {
        to: 1,
        frame: {
          type: 'reply',
          bootId: 11,
          sequence: 1,
          replierBootId: 22,
          refused: [
            { groupId: 5, reason: 'notFollowing', term: 8 },
            { groupId: 9, reason: 'noReplica', term: 0 },
          ],
        },
      },
    ]);
  });

  test('that are repeated or overtaken are neither heard nor answered; those of a new process are', () => {
    const two = replica(1);
    const { heartbeats, take } = node(22, { 2: two });
    for (const sequence of [1, 3, 2, 3]) heartbeats.receive(1, beat(sequence, [2]));
    expect(two.heard).toBe(2);
    expect(take()).toHaveLength(2);
    heartbeats.receive(1, beat(1, [2], 12));
    expect(two.heard).toBe(3);
  });

  test('a kept list is looked up once, and again when groups came or went', () => {
    const groups: Record<number, HeartbeatReceiver> = { 2: replica(1) };
    const { heartbeats, take } = node(22, groups);
    const list = [2, 5];
    heartbeats.receive(1, beat(1, list));
    const five = replica(1);
    groups[5] = five;
    heartbeats.groupsChanged();
    heartbeats.receive(1, beat(2, list));
    expect(five.heard).toBe(1);
    expect(take().map(({ frame }) => frame.type === 'reply' && frame.refused.length)).toEqual([1, 0]);
  });
});
