/**
 * The membership of the groups, and the replicas that are lost for good.
 *
 * Q1. No group loses a majority: neither of its voters, nor of those of a change in progress. So no disk is lost, and
 *     no change is requested, before the outcome of the last change is known.
 * Q2. Where masters schedule, they may change a membership at any moment. Then a disk is lost only when every range has
 *     three living voters and no change in progress; whatever change comes next leaves one of its two sides with the
 *     lost voter and two living ones.
 */
import type { RangeDescriptor } from '@remora/protocol';
import { type ConfChange, type ConfState, type LogPosition, MASTER_GROUP } from '@remora/raft';
import type { ReplicaPlace } from '../../../packages/dataserver/src/state/reshape/membership.ts';
import { changeConf, confChange } from '../../../packages/raft/src/core/membership/conf-change.ts';
import { isJoint } from '../../../packages/raft/src/core/membership/membership.ts';
import type { SimNode } from './node.ts';
import { FIRST_RANGE } from './topology.ts';

/** A group without a change in progress, according to its leader. */
export interface Place {
  readonly groupId: number;
  readonly leader: SimNode;
  readonly conf: ConfState;
}

/** Ids of replicas that a run adds; the master allocates lower ones. */
const FIRST_ADDED = 1_000_001;

export interface MembersDeps {
  readonly groupIds: readonly number[];
  readonly leaderOf: (groupId: number) => SimNode | undefined;
  /** If the masters create and remove ranges, all ranges that they know (Q2); otherwise undefined. */
  readonly steered: () => readonly RangeDescriptor[] | undefined;
  /** Whether the master is moving a replica of the range (moves.ts MV1). */
  readonly moving: () => boolean;
}

export class Members {
  readonly #deps: MembersDeps;
  /** By group and replica. */
  readonly #lost = new Set<string>();
  /**
   * Nodes whose disks are lost: their ids are never used again, and a replica that a split places there is never
   * created.
   */
  readonly #lostNodes = new Set<number>();
  /** The last requested change, by group. */
  readonly #asked = new Map<number, LogPosition>();
  /** The nodes of added replicas, by their ids. */
  readonly #added = new Map<number, number>();

  constructor(deps: MembersDeps) {
    this.#deps = deps;
  }

  /** Undefined while the group has no leader, or a change is in progress. */
  place(groupId: number): Place | undefined {
    const leader = this.#deps.leaderOf(groupId);
    const group = leader?.group(groupId);
    if (leader === undefined || group?.ready !== true || leader.clock.paused) return undefined;
    const { conf, applied, changePending } = group.status();
    if (groupId === FIRST_RANGE && (this.#deps.moving() || changePending)) return undefined;
    if (isJoint(conf) || applied < (this.#asked.get(groupId)?.index ?? 0)) return undefined;
    return { groupId, leader, conf };
  }

  isLost(groupId: number, replicaId: number): boolean {
    return this.#lost.has(`${groupId}/${replicaId}`);
  }

  /** Whether a replica belongs on a node whose disk is lost, as any other replica of its range knows. */
  isHomeLost(nodes: readonly SimNode[], groupId: number, replicaId: number): boolean {
    const replicas = nodes.flatMap(({ roles }) => [...(roles?.store?.replicas() ?? [])]);
    return replicas
      .filter(({ rangeId }) => rangeId === groupId)
      .flatMap(({ state }) => state.descriptor.replicas)
      .some((place) => place.replicaId === replicaId && this.#lostNodes.has(place.nodeId));
  }

  /** Whether all groups survive if this node's disk is lost now. */
  canLose(node: SimNode): boolean {
    const { groupIds, steered } = this.#deps;
    const ranges = steered();
    const fixed = ranges === undefined ? groupIds : [MASTER_GROUP];
    if (ranges !== undefined && !this.#canSpareOneOf(ranges)) return false;
    return fixed.every((groupId) => {
      const place = this.place(groupId);
      return place !== undefined && this.#majorityLeft(groupId, place.conf, node.stored(groupId)?.replicaId);
    });
  }

  /** Q2. Whether every range can spare one. */
  #canSpareOneOf(ranges: readonly RangeDescriptor[]): boolean {
    return ranges.length > 0 && ranges.every(({ rangeId }) => this.#canSpareOne(rangeId));
  }

  #canSpareOne(groupId: number): boolean {
    const leader = this.#deps.leaderOf(groupId);
    const group = leader?.group(groupId);
    if (leader === undefined || group?.ready !== true) return false;
    const { conf, changePending } = group.status();
    const isThere = (id: number): boolean =>
      !this.isLost(groupId, id) && !this.#lostNodes.has(this.nodeOf({ groupId, leader, conf }, id) ?? 0);
    return !isJoint(conf) && !changePending && conf.voters.length >= 3 && conf.voters.every(isThere);
  }

  /** A node's disk is lost: its replicas never come back. */
  lose(node: SimNode): void {
    if (node.nodeId !== undefined) this.#lostNodes.add(node.nodeId);
    for (const groupId of node.groupIds) this.#lost.add(`${groupId}/${node.stored(groupId)?.replicaId}`);
    for (const [replicaId, nodeId] of this.#added) {
      if (nodeId === node.nodeId) this.#lost.add(`${FIRST_RANGE}/${replicaId}`); // perhaps it was never created
    }
  }

  /** Asks the leader for a change of membership; returns false if it must not be requested now. */
  change({ groupId, leader, conf }: Place, change: ConfChange, places: readonly ReplicaPlace[] = []): boolean {
    const next = changeConf(conf, change);
    if ('invalid' in next || !this.#majorityLeft(groupId, next)) return false;
    leader.enter(({ host, store }) => {
      const replica = [...(store?.replicas() ?? [])].find(({ rangeId }) => rangeId === groupId);
      const proposed = replica?.members.change(change, places) ?? host.group(groupId)?.proposeConf(change);
      if (proposed !== undefined && !('refused' in proposed)) this.#asked.set(groupId, proposed);
    });
    return true;
  }

  /** Asks for an additional replica of a range, first as a learner; returns false if it must not be requested now. */
  add(place: Place, nodeId: number): boolean {
    const replicaId = this.nextId(nodeId);
    return this.change(place, confChange([{ type: 'addLearner', replica: replicaId }]), [{ replicaId, nodeId }]);
  }

  /** The id of a new replica for this node. */
  nextId(nodeId: number): number {
    const replicaId = FIRST_ADDED + this.#added.size;
    this.#added.set(replicaId, nodeId);
    return replicaId;
  }

  /** The node of a replica of the range, as its leader knows it. */
  nodeOf({ groupId, leader }: Place, replica: number): number | undefined {
    const range = [...(leader.roles?.store?.replicas() ?? [])].find(({ rangeId }) => rangeId === groupId);
    return range?.state.descriptor.replicas.find(({ replicaId }) => replicaId === replica)?.nodeId;
  }

  /** Whether a change leaves majorities (Q1). */
  allows({ groupId, conf }: Place, change: ConfChange): boolean {
    const next = changeConf(conf, change);
    return !('invalid' in next) && this.#majorityLeft(groupId, next);
  }

  #majorityLeft(groupId: number, { voters, votersOutgoing }: ConfState, without?: number): boolean {
    const left = (id: number): boolean => !this.isLost(groupId, id) && id !== without;
    return [voters, votersOutgoing].every((side) => side.length === 0 || 2 * side.filter(left).length > side.length);
  }
}
