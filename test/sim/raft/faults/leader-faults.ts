/**
 * Sequences of faults in the order in which they hurt. Each brings a leader or its voters into a state that single
 * faults reach too seldom.
 */

import { type Fault, nothing } from '../../common/faults/fault.ts';
import type { World } from '../world.ts';
import { around, Course, course, from, leaderNode, to } from './course.ts';

/**
 * A leader's answers come late, then all its outgoing messages are lost: what it hears describes the distant past
 * (traps 6, 7).
 */
const lateAnswers = course('late answers', (going, world, leader, { b, c }) => {
  const { electionMs } = world.options;
  going.delay(to(leader), Math.floor(electionMs / 3) + (b % electionMs));
  going.after(c % electionMs, () => going.block(from(leader)));
});

/**
 * A leader reaches only one follower while many entries are proposed, then ends: logs diverge (dissertation, figure
 * 3.7).
 */
const divided = course('divided leader', (going, world, leader, { a, b, c }) => {
  const groupId = world.groupAt(a);
  const confidant = world.nodeAt(b).id;
  going.block((sender, receiver) => sender === leader && receiver !== confidant);
  world.burst(groupId, world.nodeAt(leader - 1), 1 + (c % 10), 8);
  const { electionMs } = world.options;
  if (c % 3 > 0) going.after(5 + (c % electionMs), () => going.restart(leader, c % 2 === 0, b % electionMs));
});

/** One leader after the other is cut off, some together with a follower: short terms that commit little. */
const churn: Fault<World> = {
  kind: 'leaders cut off in turn',
  lastsMs: (random, electionMs) => 4 * electionMs + random.int(8 * electionMs),
  begin: (world, { a, b, c }) => {
    const { electionMs } = world.options;
    const going = new Course(world);
    let mend = nothing;
    const next = (i: number): void => {
      mend();
      mend = nothing;
      const leader = leaderNode(world, a);
      if (leader !== undefined) {
        const confidant = ((c >> (i % 8)) & 1) === 1 ? world.nodeAt(b + i).id : leader;
        const inside = (node: number) => node === leader || node === confidant;
        world.burst(world.groupAt(a), world.nodeAt(leader - 1), 1 + ((b + i) % 4), 8);
        going.after(5 + ((b >> (i % 8)) % 60), () => {
          mend = going.block((sender, receiver) => inside(sender) !== inside(receiver));
        });
      }
      going.after(electionMs + ((b * (i + 1)) % electionMs), () => next(i + 1));
    };
    next(0);
    return going.end;
  },
};

/**
 * A follower that does not hear the leader any more campaigns. The others, which do hear it, are restarted while the
 * leader is cut off: they must not have forgotten their promises (design §4).
 */
const forgetful = course('followers started anew', (going, world, leader, { b, c }) => {
  const { electionMs } = world.options;
  const cut = world.nodeAt(b).id;
  going.block((sender, receiver) => sender === leader && receiver === cut);
  going.after(electionMs / 2 + (c % electionMs), () => {
    going.block(around(leader));
    for (const node of world.nodes) {
      if (node.id !== leader && node.id !== cut) going.restart(node.id, c % 2 === 0, (b + c) % 20);
    }
  });
});

/** Voters end right after they voted, and receive the vote request again. */
const votersRestarted: Fault<World> = {
  kind: 'voters started anew',
  lastsMs: (random, electionMs) => 2 * electionMs + random.int(4 * electionMs),
  begin: (world, { a, b, c }) => {
    const { electionMs } = world.options;
    const going = new Course(world);
    const groupId = world.groupAt(a);
    const leader = leaderNode(world, a);
    if (leader !== undefined) going.block(around(leader));
    const seen = new Map<number, number>();
    const look = (): void => {
      for (const node of world.nodes) {
        const term = node.group(groupId)?.term ?? 0;
        const before = seen.get(node.id) ?? term;
        seen.set(node.id, term);
        if (term > before && node.id !== leader && (b + node.id) % 3 > 0) going.restart(node.id, false, c % 10);
      }
      going.after(4, look);
    };
    going.after(electionMs / 2, look);
    return going.end;
  },
};

/** Leadership is transferred while the leader's outgoing messages are lost, or with an answer that comes late. */
const transferCutOff = course('transfer cut off', (going, world, leader, { a, b, c }) => {
  const groupId = world.groupAt(a);
  const group = world.nodeAt(leader - 1).group(groupId);
  const others = group?.status().conf.voters.filter((id) => id !== group.replicaId) ?? [];
  const target = others[b % Math.max(1, others.length)];
  if (target === undefined) return;
  world.nodeAt(leader - 1).enter((host) => host.group(groupId)?.transferLeader(target));
  going.after(c % 40, () => going.block(around(leader)));
});

/** A leader lives behind a rule that rejects all its connections: the others believe that its process has ended. */
const rejected = course('leader rejected', (going, world, leader, { a, b, c }) => {
  world.burst(world.groupAt(a), world.nodeAt(leader - 1), 1 + (b % 5), 8);
  const spared = c % 2 === 0 ? world.nodeAt(b).id : leader;
  const cut = around(leader);
  going.refuse((from, to) => cut(from, to) && (spared === leader || (from !== spared && to !== spared)));
});

export const LEADER_FAULTS: readonly Fault[] = [
  lateAnswers,
  divided,
  churn,
  forgetful,
  votersRestarted,
  transferCutOff,
  rejected,
];
