/** Membership changes at bad moments, of every kind (traps 1, 2, 3, 10). */
import type { ConfChange, ConfState, ConfStep } from '@remora/raft';
import { changeConf, confChange, LEAVE_JOINT } from '../../../../packages/raft/src/core/membership/conf-change.ts';
import { isJoint, membersOf } from '../../../../packages/raft/src/core/membership/membership.ts';
import { type Fault, type FaultEvent, nothing } from '../../common/faults/fault.ts';
import type { SimNode } from '../node.ts';
import type { World } from '../world.ts';

/** The group and the membership for which a change is proposed. */
interface Place {
  readonly groupId: number;
  readonly leader: SimNode;
  readonly conf: ConfState;
}

function change(
  kind: string,
  make: (world: World, place: Place, event: FaultEvent) => ConfChange | undefined,
): Fault<World> {
  return {
    kind,
    lastsMs: () => 0,
    begin: (world, event) => {
      const groupId = world.groupAt(event.a);
      const leader = world.leaderOf(groupId);
      const conf = leader?.group(groupId)?.status().conf;
      if (leader === undefined || conf === undefined) return undefined;
      const wanted = make(world, { groupId, leader, conf }, event);
      if (wanted === undefined || !leavesQuorum(world, conf, wanted)) return undefined;
      leader.enter((host) => host.group(groupId)?.proposeConf(wanted));
      return nothing;
    },
  };
}

/** Applies the fault to the first group that it suits, starting from the drawn one. */
function anywhere(fault: Fault<World>): Fault<World> {
  return {
    ...fault,
    begin: (world, event) => {
      for (let i = 0; i < world.groupIds.length; i++) {
        const end = fault.begin(world, { ...event, a: event.a + i });
        if (end !== undefined) return end;
      }
      return undefined;
    },
  };
}

/**
 * Refuses a change after which lost replicas would be the majority. It would end the group, so no operator requests it.
 */
function leavesQuorum(world: World, conf: ConfState, wanted: ConfChange): boolean {
  const next = changeConf(conf, wanted);
  if ('invalid' in next) return true; // The change is refused, or has no effect.
  return [next.voters, next.votersOutgoing].every(
    (side) => side.length === 0 || 2 * side.filter((id) => !world.isLost(id)).length > side.length,
  );
}

/** A new replica on a node that has none of this group. */
function fresh(world: World, { groupId }: Place, drawn: number): number | undefined {
  for (let i = 0; i < world.nodes.length; i++) {
    const node = world.nodeAt(drawn + i);
    if (world.mayCreate(node, groupId)) return world.createReplica(node, groupId);
  }
  return undefined;
}

function oneOf(ids: readonly number[], drawn: number): number | undefined {
  return ids[drawn % Math.max(1, ids.length)];
}

function step(type: ConfStep['type'], replica: number | undefined): ConfChange | undefined {
  return replica === undefined ? undefined : confChange([{ type, replica }]);
}

/** A voter to remove, preferably a lost one. Undefined if too few would be left. */
function leaving(world: World, { conf }: Place, { b, c }: FaultEvent): number | undefined {
  const lost = conf.voters.find((id) => world.isLost(id));
  if (lost !== undefined) return lost;
  // A group of one is worth testing, but rarely.
  return conf.voters.length > (c % 8 === 0 ? 1 : 2) ? oneOf(conf.voters, b) : undefined;
}

const replace = (transition: ConfChange['transition']) => (world: World, place: Place, event: FaultEvent) => {
  const out = leaving(world, place, event);
  const into = out === undefined || isJoint(place.conf) ? undefined : fresh(world, place, event.c);
  if (out === undefined || into === undefined) return undefined;
  return confChange(
    [
      { type: 'addVoter', replica: into },
      { type: 'remove', replica: out },
    ],
    transition,
  );
};

/** Any steps for any members, in a single change. */
function manySteps(_world: World, place: Place, { b, c }: FaultEvent): ConfChange | undefined {
  const types: readonly ConfStep['type'][] = ['addVoter', 'addLearner', 'remove'];
  const steps = membersOf(place.conf).flatMap((replica, i): ConfStep[] => {
    const type = types[((b >> i) ^ (c >> (2 * i))) % 4];
    return type === undefined ? [] : [{ type, replica }];
  });
  if (steps.length === 0) return undefined;
  const wanted = confChange(steps, c % 3 === 0 ? 'joint' : 'jointAuto');
  const next = changeConf(place.conf, wanted);
  return 'invalid' in next || next.voters.length >= 2 ? wanted : undefined;
}

/** A machine's disk is lost for good: its replicas never come back, and others replace them under new ids. */
const diskLost: Fault<World> = {
  kind: 'lost disk',
  lastsMs: (random, electionMs) => random.int(2 * electionMs),
  begin: (world, event) => {
    const node = world.nodeAt(event.a);
    if (!node.up || !world.canSpare(node)) return undefined;
    world.loseDisk(node);
    return () => world.startAgain(node);
  },
};

/** Leaves a joint configuration that is not left automatically. */
const leave: Fault<World> = {
  kind: 'joint configuration left',
  lastsMs: () => 0,
  begin: (world, { a }) => {
    for (let i = 0; i < world.groupIds.length; i++) {
      const groupId = world.groupAt(a + i);
      const leader = world.leaderOf(groupId);
      const conf = leader?.group(groupId)?.status().conf;
      if (leader === undefined || conf === undefined || !isJoint(conf) || conf.autoLeave) continue;
      leader.enter((host) => host.group(groupId)?.proposeConf(LEAVE_JOINT));
      return nothing;
    }
    return undefined;
  },
};

export const MEMBER_FAULTS: readonly Fault[] = [
  change('learner added', (world, place, { b }) => step('addLearner', fresh(world, place, b))),
  change('voter added', (world, place, { b }) => step('addVoter', fresh(world, place, b))),
  anywhere(change('learner promoted', (_, { conf }, { b }) => step('addVoter', oneOf(conf.learners, b)))),
  change('voter demoted', (world, place, event) => step('addLearner', leaving(world, place, event))),
  change('replica removed', (world, place, event) => {
    const learner = event.c % 2 === 0 ? oneOf(place.conf.learners, event.b) : undefined;
    return step('remove', learner ?? leaving(world, place, event));
  }),
  change('replica replaced', replace('auto')),
  change('replica replaced, left by hand', replace('joint')),
  change('many members changed', manySteps),
  leave,
  diskLost,
];
