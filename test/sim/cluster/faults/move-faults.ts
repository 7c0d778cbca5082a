/** Replicas and leaderships that the master moves at bad moments. */
import type { Random } from '@remora/base';
import { confChange } from '../../../../packages/raft/src/core/membership/conf-change.ts';
import { type Fault, nothing } from '../../common/faults/fault.ts';
import { FIRST_RANGE } from '../topology.ts';
import type { World } from '../world.ts';

/** The time after which a move is given up, whatever its state. */
const GIVEN_UP_MS = 12_000;

const lastsMs = (random: Random): number => GIVEN_UP_MS / 2 + random.int(GIVEN_UP_MS / 2);

/** In every third move the node that the range leaves loses power as its replica ends, and starts again. */
const moved: Fault<World> = {
  kind: 'replica moved by the master',
  lastsMs,
  begin: (world, { a, b, c }) => {
    const { members, moves } = world;
    const place = members.place(FIRST_RANGE);
    const free = world.nodes.filter(
      (node) => node.up && node.machine.roles.includes('data') && node.stored(FIRST_RANGE) === undefined,
    );
    const to = free[b % Math.max(1, free.length)]?.nodeId;
    if (place === undefined || to === undefined) return undefined;
    const { voters } = place.conf;
    const followers = voters.filter((id) => id !== place.leader.stored(FIRST_RANGE)?.replicaId);
    const out = followers.find((id) => members.isLost(FIRST_RANGE, id)) ?? followers[a % Math.max(1, followers.length)];
    const from = out === undefined ? undefined : members.nodeOf(place, out);
    if (out === undefined || from === undefined) return undefined;
    const replicaId = members.nextId(to);
    const swap = confChange([
      { type: 'addVoter', replica: replicaId },
      { type: 'addLearner', replica: out },
    ]);
    if (!members.allows(place, swap)) return undefined;
    const left = world.nodes.find(({ nodeId }) => nodeId === from);
    return moves.begin({ from, to, replicaId }, () => {
      if (left === undefined || c % 3 !== 0 || !left.up) return;
      left.end(true);
      world.loop.setTimer(1 + (c % 500), () => world.startAgain(left));
    });
  },
};

const handedOver: Fault<World> = {
  kind: 'leadership moved by the master',
  lastsMs,
  begin: (world, { b }) => {
    const place = world.members.place(FIRST_RANGE);
    if (place === undefined) return undefined;
    const { voters } = place.conf;
    const to = voters[b % Math.max(1, voters.length)];
    return to === undefined ? undefined : world.moves.begin({ from: 0, to: 0, replicaId: 0, transferTo: to }, nothing);
  },
};

/** A leader removes a learner itself: the learner's node may return. */
const removed: Fault<World> = {
  kind: 'learner removed',
  lastsMs: () => 0,
  begin: (world, { b }) => {
    const place = world.members.place(FIRST_RANGE);
    const learners = place?.conf.learners ?? [];
    const replica = learners[b % Math.max(1, learners.length)];
    if (place === undefined || replica === undefined) return undefined;
    return world.members.change(place, confChange([{ type: 'remove', replica }])) ? nothing : undefined;
  },
};

export const MOVE_FAULTS: readonly Fault<World>[] = [moved, handedOver, removed];
