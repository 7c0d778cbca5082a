/** Changes of membership at bad moments (traps 1, 2, 3). */
import { type ConfChange, MASTER_GROUP } from '@remora/raft';
import { confChange } from '../../../../packages/raft/src/core/membership/conf-change.ts';
import { isVoter, membersOf } from '../../../../packages/raft/src/core/membership/membership.ts';
import { type Fault, type FaultEvent, nothing } from '../../common/faults/fault.ts';
import type { Place } from '../members.ts';
import { FIRST_RANGE } from '../topology.ts';
import type { World } from '../world.ts';

/** The fewest voters that these faults leave to a group. */
const VOTERS_MIN = 2;

function change(
  kind: string,
  make: (world: World, place: Place, event: FaultEvent) => ConfChange | undefined,
): Fault<World> {
  return {
    kind,
    lastsMs: () => 0,
    begin: (world, event) => {
      const groupId = world.groupAt(event.a);
      const place = isOurs(world, groupId) ? world.members.place(groupId) : undefined;
      const wanted = place === undefined ? undefined : make(world, place, event);
      if (place === undefined || wanted === undefined) return undefined;
      return world.members.change(place, wanted) ? nothing : undefined;
    },
  };
}

/** Where masters schedule, only they change the membership of ranges. */
function isOurs({ options }: World, groupId: number): boolean {
  return groupId === MASTER_GROUP || !options.steered;
}

function oneOf(ids: readonly number[], drawn: number): number | undefined {
  return ids[drawn % Math.max(1, ids.length)];
}

/** A voter to demote; preferably one whose disk is lost. */
function leaving(world: World, place: Place, drawn: number): number | undefined {
  const { voters } = place.conf;
  const lost = voters.find((id) => world.members.isLost(place.groupId, id));
  return voters.length > VOTERS_MIN ? (lost ?? oneOf(voters, drawn)) : undefined;
}

function coming(world: World, place: Place, drawn: number): number | undefined {
  const alive = place.conf.learners.filter((id) => !world.members.isLost(place.groupId, id));
  return oneOf(alive, drawn);
}

/** A node without a replica of the range gets one: the master has it created, a snapshot brings it in. */
const added: Fault<World> = {
  kind: 'replica added',
  lastsMs: () => 0,
  begin: (world, { b }) => {
    const place = isOurs(world, FIRST_RANGE) ? world.members.place(FIRST_RANGE) : undefined;
    const free = world.nodes.filter(
      (node) => node.up && node.machine.roles.includes('data') && node.stored(FIRST_RANGE) === undefined,
    );
    const nodeId = free[b % Math.max(1, free.length)]?.nodeId;
    if (place === undefined || nodeId === undefined) return undefined;
    return world.members.add(place, nodeId) ? nothing : undefined;
  },
};

export const MEMBER_FAULTS: readonly Fault<World>[] = [
  change('voter demoted', (world, place, { b, c }) => {
    const replica = leaving(world, place, b);
    const transition = c % 2 === 0 ? 'auto' : 'jointAuto';
    return replica === undefined ? undefined : confChange([{ type: 'addLearner', replica }], transition);
  }),
  change('learner promoted', (world, place, { b, c }) => {
    const replica = coming(world, place, b);
    const transition = c % 2 === 0 ? 'auto' : 'jointAuto';
    return replica === undefined ? undefined : confChange([{ type: 'addVoter', replica }], transition);
  }),
  change('voter replaced by a learner', (world, place, { b, c }) => {
    const into = coming(world, place, b);
    const out = oneOf(place.conf.voters, c);
    if (into === undefined || out === undefined) return undefined;
    return confChange([
      { type: 'addVoter', replica: into },
      { type: 'addLearner', replica: out },
    ]);
  }),
  change('lost replica removed', (world, { groupId, conf }, { c }) => {
    const replica = membersOf(conf).find((id) => world.members.isLost(groupId, id));
    const transition = c % 2 === 0 ? 'auto' : 'jointAuto';
    if (replica === undefined) return undefined;
    // A range removes learners only (membership.ts M3).
    const type = groupId === FIRST_RANGE && isVoter(conf, replica) ? 'addLearner' : 'remove';
    return confChange([{ type, replica }], transition);
  }),
  added,
];
