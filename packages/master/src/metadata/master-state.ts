import { AuthState } from '@remora/auth';
import { assert, type ClusterVersion, EMPTY_BYTES, FIRST_VERSION, ServiceError, versionText } from '@remora/base';
import {
  type AuthImage,
  FIRST_EPOCH,
  type NodeDescriptor,
  type NodeDuty,
  type RangeDescriptor,
} from '@remora/protocol';
import { type ConfState, isMember, type LogPosition, membersOf } from '@remora/raft';
import { type RangeImage, RangeRegistry } from '../ranges/range-registry.ts';
import { ENDED_OPERATORS_MAX, type EndedOperator } from './ended-operator.ts';
import type { FirstRangePlan, MasterCommand, MasterResult } from './master-commands.ts';

/** Settings that differ from their defaults, as text (admin/settings.ts). */
export interface SettingsImage {
  /** Grows with every change; 0 if there was none. */
  readonly version: number;
  readonly texts: ReadonlyMap<string, string>;
}

const FIRST_SETTINGS: SettingsImage = { version: 0, texts: new Map() };

/** The duty of a node, unless it serves. */
export interface DutyRecord {
  readonly nodeId: number;
  readonly duty: NodeDuty;
  /** The end of a maintenance window, on the wall clock; 0 for every other duty. */
  readonly untilMs: number;
}

interface PauseRecord {
  readonly name: string;
  /** On the wall clock. */
  readonly untilMs: number;
}

/** Ids from `from` up to, but not including, `to`. */
export interface IdGap {
  readonly from: number;
  readonly to: number;
}

/** The contents of a checkpoint and of a snapshot of the master. */
export interface MasterImage extends RangeImage {
  readonly applied: LogPosition;
  readonly conf: ConfState;
  readonly nextNodeId: number;
  readonly nextRangeId: number;
  readonly nextReplicaId: number;
  /** No revision above it was allocated; 0 if none was requested. */
  readonly revisionBound: number;
  readonly settings: SettingsImage;
  readonly nodes: readonly NodeDescriptor[];
  readonly duties: readonly DutyRecord[];
  readonly pauses: readonly PauseRecord[];
  /** Ids of nodes that may have been allocated without a record here (M10). */
  readonly forgottenNodes: readonly IdGap[];
  /** Nodes that have left the group of the masters (M11). */
  readonly formerMasters: readonly number[];
  /** The wanted number of masters: the number that founded the cluster. */
  readonly mastersWanted: number;
  /** Users, roles and permissions. */
  readonly auth: AuthImage;
  /** The version in force. */
  readonly clusterVersion: ClusterVersion;
  /** Operators that have ended, oldest first. */
  readonly operators: readonly EndedOperator[];
}

/** Lower ids belong to what exists before the master does: nodes of the initial cluster, replicas of its own group. */
export const FIRST_ALLOCATED_NODE = 1_001;
const FIRST_RANGE = 2;
const FIRST_REPLICA = 1_001;
/** M10. More ids than the lost masters can have allocated without any survivor's knowledge. */
const IDS_SKIPPED = 1_000_000;
const REVISIONS_SKIPPED = 1_000_000_000_000;

/**
 * The cluster's metadata, in memory on every master.
 *
 * M1. Ids of nodes, ranges and replicas are never assigned twice (traps 10).
 * M2. A node id belongs permanently to one data directory (its incarnation). A node that lost its data may not return
 *     under its old id, because others rely on what it had promised and stored.
 * M6. A range itself decides on its members and bounds, in its own log; the master follows (range-registry.ts).
 * M7. The bound of revisions never decreases: a revision that one leader assigned below it is never assigned again by a
 *     later leader (revision-issuer.ts).
 * M8. Apply stores settings as text without validating them, so that programs that know other settings or other limits
 *     have the same state. The leader validates them beforehand, against the state whose version the command names.
 * M9. A removed node is never accepted again, neither under its id nor with its data.
 * M10. A master that continues alone (raft/core/forced.ts) may lack the last changes. So ids and revisions continue far
 *      above all that can have been assigned, and a node with an id in this gap is accepted although the master has
 *      never heard of it.
 * M11. Nodes that have left the group of the masters are remembered: the ids of its replicas are node ids, and none of
 *      them returns (masters/plan.ts MS3).
 * M12. The version in force never decreases. The leader checks beforehand that all nodes can write a new one
 *      (nodes/upgrade.ts).
 */
export class MasterState {
  applied: LogPosition = { index: 0, term: 0 };
  #conf: ConfState;
  #formerMasters: readonly number[] = [];
  #mastersWanted: number;
  #nextNodeId = FIRST_ALLOCATED_NODE;
  #nextRangeId = FIRST_RANGE;
  #nextReplicaId = FIRST_REPLICA;
  #revisionBound = 0;
  #settings = FIRST_SETTINGS;
  #auth = new AuthState();
  #clusterVersion: ClusterVersion = FIRST_VERSION;
  readonly #nodes = new Map<number, NodeDescriptor>();
  readonly #ranges = new RangeRegistry();
  readonly #duties = new Map<number, DutyRecord>();
  readonly #pauses = new Map<string, number>();
  #forgottenNodes: readonly IdGap[] = [];
  #operators: readonly EndedOperator[] = [];

  constructor(conf: ConfState) {
    this.#conf = conf;
    this.#mastersWanted = conf.voters.length;
  }

  /** The configuration of the masters' group. */
  get conf(): ConfState {
    return this.#conf;
  }

  /** M11. */
  get formerMasters(): readonly number[] {
    return this.#formerMasters;
  }

  get mastersWanted(): number {
    return this.#mastersWanted;
  }

  /** The members of the masters' group have changed. (M11) */
  reconfigure(conf: ConfState): void {
    const left = membersOf(this.#conf).filter((nodeId) => !isMember(conf, nodeId));
    this.#formerMasters = [...this.#formerMasters, ...left];
    this.#conf = conf;
  }

  nodes(): readonly NodeDescriptor[] {
    return [...this.#nodes.values()];
  }

  ranges(): readonly RangeDescriptor[] {
    return this.#ranges.all();
  }

  range(rangeId: number): RangeDescriptor | undefined {
    return this.#ranges.get(rangeId);
  }

  /** Whether a range begins where a person chose (range-registry.ts RR6). */
  beginsAtChosen(rangeId: number): boolean {
    return this.#ranges.isChosen(rangeId);
  }

  /** The range into which a range was merged; undefined if it still exists, or is unknown. */
  mergedInto(rangeId: number): number | undefined {
    return this.#ranges.mergedInto(rangeId);
  }

  dutyOf(nodeId: number): DutyRecord {
    return this.#duties.get(nodeId) ?? { nodeId, duty: 'serving', untilMs: 0 };
  }

  /** Paused schedulers, each with the end of its pause on the wall clock. */
  get pauses(): ReadonlyMap<string, number> {
    return this.#pauses;
  }

  /** The lowest replica id that was never allocated. */
  get nextReplicaId(): number {
    return this.#nextReplicaId;
  }

  /** M7. */
  get revisionBound(): number {
    return this.#revisionBound;
  }

  get settings(): SettingsImage {
    return this.#settings;
  }

  /** Users, roles and permissions. The image never changes: another one replaces it. */
  get auth(): AuthImage {
    return this.#auth.image;
  }

  /** The version in force (M12). */
  get clusterVersion(): ClusterVersion {
    return this.#clusterVersion;
  }

  /** Operators that have ended, oldest first, at most `ENDED_OPERATORS_MAX`. */
  get operators(): readonly EndedOperator[] {
    return this.#operators;
  }

  node(nodeId: number): NodeDescriptor | undefined {
    return this.#nodes.get(nodeId);
  }

  /** Returns a node's identity, for the nodes that it calls; undefined if it is not registered. */
  named(nodeId: number): { readonly incarnation: string; readonly removed: boolean } | undefined {
    const incarnation = this.#nodes.get(nodeId)?.incarnation;
    return incarnation === undefined ? undefined : { incarnation, removed: this.isRemoved(nodeId) };
  }

  /** The incarnations of nodes that were not removed. */
  incarnations(): readonly (readonly [nodeId: number, incarnation: string])[] {
    const there = this.nodes().filter(({ nodeId }) => !this.isRemoved(nodeId));
    return there.map(({ nodeId, incarnation }) => [nodeId, incarnation]);
  }

  apply(command: MasterCommand): MasterResult {
    switch (command.type) {
      case 'registerNode':
        return this.#register(command.descriptor);
      case 'bootstrapRange':
        return this.#bootstrap(command.nodeIds);
      case 'bootstrapRanges':
        return this.#bootstrapSeveral(command.ranges);
      case 'changeRange':
        this.#ranges.changeMembers(command.descriptor);
        this.#takeIds(command.descriptor);
        return { type: 'changeRange' };
      case 'describeRange':
        this.#ranges.describe(command.descriptor);
        this.#takeIds(command.descriptor);
        return { type: 'describeRange' };
      case 'askSplit':
        return this.#askSplit(command);
      case 'setDuty':
        return this.#setDuty(command);
      case 'pauseScheduler':
        if (command.untilMs === 0) this.#pauses.delete(command.name);
        else this.#pauses.set(command.name, command.untilMs);
        return { type: 'pauseScheduler' };
      case 'allocateReplicas':
        return { type: 'allocateReplicas', first: this.#takeReplicaIds(command.count) };
      case 'liftRevisions':
        this.#revisionBound = Math.max(this.#revisionBound, command.upTo);
        return { type: 'liftRevisions' };
      case 'changeSetting':
        return this.#changeSetting(command);
      case 'changeAuth':
        this.#checkFounded();
        this.#auth.apply(command.change);
        return { type: 'changeAuth', revision: this.#auth.image.revision };
      case 'foundAuth':
        this.#checkNoRanges();
        this.#auth.found(command);
        return { type: 'foundAuth' };
      case 'finalizeUpgrade':
        return this.#finalizeUpgrade(command.version);
      case 'recordOperator':
        this.#operators = [...this.#operators, command.operator].slice(-ENDED_OPERATORS_MAX);
        return { type: 'recordOperator' };
    }
  }

  /** The error with which a registration would end; undefined if it would succeed. */
  registrationConflict(descriptor: NodeDescriptor): ServiceError | undefined {
    const byId = descriptor.nodeId === 0 ? undefined : this.#nodes.get(descriptor.nodeId);
    const byData = this.nodes().find((node) => node.incarnation === descriptor.incarnation);
    const removed = [byId, byData].find((node) => node !== undefined && this.isRemoved(node.nodeId));
    if (removed !== undefined) return this.removedConflict(removed.nodeId);
    if (byId !== undefined && byId.incarnation !== descriptor.incarnation) {
      return new ServiceError(
        'NODE_CONFLICT',
        `node id ${descriptor.nodeId} belongs to another data directory; a node whose data was wiped must join under a new name`,
      );
    }
    if (byData !== undefined && descriptor.nodeId !== 0 && byData.nodeId !== descriptor.nodeId) {
      return new ServiceError(
        'NODE_CONFLICT',
        `this data directory belongs to node ${byData.nodeId}; a copy of it cannot join as node ${descriptor.nodeId}`,
      );
    }
    if (byId === undefined && descriptor.nodeId >= FIRST_ALLOCATED_NODE && !this.#isForgotten(descriptor.nodeId)) {
      // M1. If it were accepted, the id could be assigned to another node later.
      return new ServiceError('NODE_CONFLICT', `node id ${descriptor.nodeId} was never assigned in this cluster`);
    }
    const byName = this.nodes().find((node) => node.name === descriptor.name && !this.isRemoved(node.nodeId));
    if (byName !== undefined && byName.incarnation !== descriptor.incarnation) {
      return new ServiceError(
        'NODE_CONFLICT',
        `a node named "${descriptor.name}" is already in the cluster; choose another --name`,
      );
    }
    return undefined;
  }

  /** M10. */
  goOnAlone(): void {
    const gap = { from: this.#nextNodeId, to: this.#nextNodeId + IDS_SKIPPED };
    this.#forgottenNodes = [...this.#forgottenNodes, gap];
    this.#nextNodeId = gap.to;
    this.#nextRangeId += IDS_SKIPPED;
    this.#nextReplicaId += IDS_SKIPPED;
    this.#revisionBound += REVISIONS_SKIPPED;
    this.#auth.skipRevisions(IDS_SKIPPED);
  }

  #isForgotten(nodeId: number): boolean {
    return this.#forgottenNodes.some(({ from, to }) => from <= nodeId && nodeId < to);
  }

  /** M9. */
  isRemoved(nodeId: number): boolean {
    return this.dutyOf(nodeId).duty === 'removed';
  }

  /** M9: the error for a removed node that comes back. */
  removedConflict(nodeId: number): ServiceError {
    return new ServiceError(
      'NODE_CONFLICT',
      `node ${nodeId} was removed from the cluster; to use its machine again, let it join as a new node with an empty data directory`,
    );
  }

  #register(descriptor: NodeDescriptor): MasterResult {
    const conflict = this.registrationConflict(descriptor);
    if (conflict !== undefined) throw conflict;
    // A repeated join of a node that never received its id.
    const known = this.nodes().find((node) => node.incarnation === descriptor.incarnation);
    const nodeId = known?.nodeId ?? (descriptor.nodeId === 0 ? this.#nextNodeId++ : descriptor.nodeId);
    this.#nodes.set(nodeId, { ...descriptor, nodeId });
    return { type: 'registerNode', nodeId };
  }

  #bootstrap(nodeIds: readonly number[]): MasterResult {
    this.#checkNoRanges();
    const rangeId = this.#found({ start: EMPTY_BYTES, nodeIds }, { end: EMPTY_BYTES, revisionSource: 'range' });
    return { type: 'bootstrapRange', rangeId };
  }

  /** With several first ranges, none counts revisions by itself (design §8). */
  #bootstrapSeveral(plans: readonly FirstRangePlan[]): MasterResult {
    this.#checkNoRanges();
    for (const [i, plan] of plans.entries()) {
      const rangeId = this.#found(plan, { end: plans[i + 1]?.start ?? EMPTY_BYTES, revisionSource: 'master' });
      if (i > 0) this.#ranges.choose(rangeId);
    }
    return { type: 'bootstrapRanges' };
  }

  #checkNoRanges(): void {
    if (this.#ranges.size > 0) throw new ServiceError('INVALID_ARGUMENT', 'the cluster already has ranges');
  }

  /** Users that exist before would decide how a cluster is founded (founding.ts FO5). */
  #checkFounded(): void {
    if (this.#ranges.size > 0) return;
    throw new ServiceError('UNAVAILABLE', 'users and roles cannot be changed before the cluster is founded; try again');
  }

  #found({ start, nodeIds }: FirstRangePlan, rest: Pick<RangeDescriptor, 'end' | 'revisionSource'>): number {
    const rangeId = this.#nextRangeId++;
    const replicas = nodeIds.map((nodeId) => ({ replicaId: this.#nextReplicaId++, nodeId, type: 'voter' as const }));
    this.#ranges.describe({ rangeId, start, epoch: FIRST_EPOCH, replicas, ...rest });
    return rangeId;
  }

  /** Returns what a report changes about a range, if anything (M6). */
  newsOf(range: RangeDescriptor): 'members' | 'all' | undefined {
    return this.#ranges.newsOf(range);
  }

  /** M1. Ids that were not allocated here (the range was registered manually) count as allocated all the same. */
  #takeIds({ rangeId, replicas }: RangeDescriptor): void {
    this.#nextRangeId = Math.max(this.#nextRangeId, rangeId + 1);
    for (const { replicaId } of replicas) this.#nextReplicaId = Math.max(this.#nextReplicaId, replicaId + 1);
  }

  #askSplit({ descriptor: range, byHand }: Extract<MasterCommand, { type: 'askSplit' }>): MasterResult {
    this.#takeIds(range);
    const asked = this.#ranges.askSplit(range, {
      rangeId: () => this.#nextRangeId++,
      replicaIds: (count) => this.#takeReplicaIds(count),
    });
    if (byHand) this.#ranges.choose(asked.childId);
    return { type: 'askSplit', asked };
  }

  /** M9. */
  #setDuty({ nodeId, duty, untilMs }: Extract<MasterCommand, { type: 'setDuty' }>): MasterResult {
    if (!this.#nodes.has(nodeId)) throw new ServiceError('INVALID_ARGUMENT', `unknown node ${nodeId}`);
    if (this.isRemoved(nodeId)) throw new ServiceError('INVALID_ARGUMENT', `node ${nodeId} was already removed`);
    if (duty === 'serving') this.#duties.delete(nodeId);
    else this.#duties.set(nodeId, { nodeId, duty, untilMs });
    return { type: 'setDuty' };
  }

  /** M1. */
  #takeReplicaIds(count: number): number {
    const first = this.#nextReplicaId;
    this.#nextReplicaId += count;
    return first;
  }

  /** M8. */
  #changeSetting({ expected, name, text }: Extract<MasterCommand, { type: 'changeSetting' }>): MasterResult {
    const { version, texts } = this.#settings;
    if (version !== expected)
      throw new ServiceError('UNAVAILABLE', 'another setting was changed concurrently; try again');
    const changed = new Map(texts);
    if (text === '') changed.delete(name);
    else changed.set(name, text);
    this.#settings = { version: version + 1, texts: changed };
    return { type: 'changeSetting' };
  }

  /** M12. */
  #finalizeUpgrade(version: ClusterVersion): MasterResult {
    if (version < this.#clusterVersion) {
      const message = `the cluster is at version ${versionText(this.#clusterVersion)}, and a version never decreases`;
      throw new ServiceError('INVALID_ARGUMENT', message);
    }
    this.#clusterVersion = version;
    return { type: 'finalizeUpgrade' };
  }

  image(): MasterImage {
    return {
      applied: this.applied,
      conf: this.conf,
      nextNodeId: this.#nextNodeId,
      nextRangeId: this.#nextRangeId,
      nextReplicaId: this.#nextReplicaId,
      revisionBound: this.#revisionBound,
      settings: this.#settings,
      nodes: this.nodes(),
      duties: [...this.#duties.values()],
      pauses: [...this.#pauses].map(([name, untilMs]) => ({ name, untilMs })),
      forgottenNodes: this.#forgottenNodes,
      formerMasters: this.#formerMasters,
      mastersWanted: this.#mastersWanted,
      auth: this.#auth.image,
      clusterVersion: this.#clusterVersion,
      operators: this.#operators,
      ...this.#ranges.image(),
    };
  }

  restore(image: MasterImage): void {
    assert(image.applied.index >= this.applied.index, 'the master is never restored to an older state');
    this.applied = image.applied;
    this.#conf = image.conf;
    this.#formerMasters = image.formerMasters;
    this.#mastersWanted = image.mastersWanted;
    this.#nextNodeId = image.nextNodeId;
    this.#nextRangeId = image.nextRangeId;
    this.#nextReplicaId = image.nextReplicaId;
    this.#revisionBound = image.revisionBound;
    this.#settings = image.settings;
    this.#auth = new AuthState(image.auth);
    this.#clusterVersion = image.clusterVersion;
    this.#forgottenNodes = image.forgottenNodes;
    this.#operators = image.operators;
    this.#nodes.clear();
    this.#duties.clear();
    this.#pauses.clear();
    for (const node of image.nodes) this.#nodes.set(node.nodeId, node);
    for (const record of image.duties) this.#duties.set(record.nodeId, record);
    for (const { name, untilMs } of image.pauses) this.#pauses.set(name, untilMs);
    this.#ranges.restore(image);
  }
}
