/**
 * A node's part in the recovery of a cluster that has lost majorities
 * (docs/decisions/0031-life-after-a-lost-majority.md).
 *
 * NR1. A replica goes on alone only if its log still ends where it was seen to end: the caller has compared it, at that
 *      position, with the other remaining replicas.
 */
import { ServiceError } from '@remora/base';
import { encodeKnownEpoch, type Store } from '@remora/dataserver';
import type { Master } from '@remora/master';
import {
  type GoOnAloneRequest,
  type HeldGroup,
  nodeGoOnAlone,
  nodeGroups,
  type RangeDescriptor,
  type RpcRegistry,
} from '@remora/protocol';
import { type Group, MASTER_GROUP } from '@remora/raft';

export interface RecoveryServiceDeps {
  readonly nodeId: number;
  readonly electionTicks: number;
  readonly master: () => Master | undefined;
  readonly store: () => Store | undefined;
}

/** A replica of this node; `range` is undefined for the masters'. */
interface Held {
  readonly group: Group;
  readonly range: RangeDescriptor | undefined;
}

export function serveRecovery(registry: RpcRegistry, deps: RecoveryServiceDeps): void {
  registry.handle(nodeGroups, (_request, _context, done) => {
    const groups = [...heldBy(deps)].map((held) => facts(held, deps.electionTicks));
    done(undefined, { nodeId: deps.nodeId, groups });
  });
  registry.handle(nodeGoOnAlone, (request, _context, done) => {
    const held = [...heldBy(deps)].find(({ group }) => group.groupId === request.groupId);
    done(goOnAlone(held, request), undefined);
  });
}

function* heldBy({ master, store }: RecoveryServiceDeps): Generator<Held> {
  const masters = master();
  if (masters !== undefined) yield { group: masters.group, range: undefined };
  for (const { group, state } of store()?.replicas() ?? []) yield { group, range: state.descriptor };
}

function facts({ group, range }: Held, electionTicks: number): HeldGroup {
  const { groupId, replicaId, conf, lastTerm, lastIndex, role, leader, silentTicks } = group.status();
  const nodeOf = (id: number): number =>
    range === undefined ? id : (range.replicas.find((replica) => replica.replicaId === id)?.nodeId ?? 0);
  return {
    ...{ groupId, replicaId, range, lastTerm, lastIndex },
    voters: conf.voters.map(nodeOf),
    votersOutgoing: conf.votersOutgoing.map(nodeOf),
    led: role === 'leader' || (leader !== 0 && silentTicks < 2 * electionTicks),
  };
}

/** Why it does not go on alone; undefined if it has begun to. (NR1) */
function goOnAlone(held: Held | undefined, request: GoOnAloneRequest): ServiceError | undefined {
  const what = request.groupId === MASTER_GROUP ? 'the masters' : `range ${request.groupId}`;
  const status = held?.group.status();
  if (held === undefined || status?.replicaId !== request.replicaId)
    return later(`${what}: this node does not have the replica`);
  if (status.lastIndex !== request.lastIndex || status.lastTerm !== request.lastTerm) {
    return later(`${what}: the log has changed since the plan was made`);
  }
  const context = held.range === undefined ? new Uint8Array(0) : encodeKnownEpoch(request.epoch);
  const result = held.group.forceAlone(context);
  if (!('refused' in result) || result.refused === 'alone') return undefined;
  return later(
    result.refused === 'leaderHeard'
      ? `${what}: a leader may have been active recently`
      : `${what}: the replica has no data to recover from`,
  );
}

function later(why: string): ServiceError {
  return new ServiceError('UNAVAILABLE', `${why}; try again in a few seconds`);
}
