/**
 * The cluster as the scheduling sees it: nodes, ranges, and derived data, updated with every report.
 *
 * C1. Totals and indexes of a node are derived from the ranges alone. Replacing the report of a range costs time for
 *     its replicas, never a pass over the cluster.
 * C2. A report from an earlier epoch, or from the leader of an earlier term, changes nothing.
 * C3. Iteration follows insertion order, which follows from the order of reports: equal reports give equal decisions.
 */
import { compareBytes, equalBytes } from '@remora/base';
import type { NodeDuty, RangeDescriptor, ReplicaDescriptor } from '@remora/protocol';

export type { NodeDuty };

/** Whether a node's heartbeats arrive. */
export type Liveness = 'up' | 'suspect' | 'down';

export interface NodeInfo {
  readonly nodeId: number;
  readonly liveness: Liveness;
  /** Since when `liveness` has its value, on the master's monotonic clock. */
  readonly livenessSinceMs: number;
  readonly duty: NodeDuty;
  /** The end of planned silence; only for nodes in maintenance. */
  readonly maintenanceUntilMs?: number;
  /** Its location, by level: `{ zone: 'a', rack: 'a3' }`. */
  readonly labels: Readonly<Record<string, string>>;
  readonly capacityBytes: number;
  readonly availableBytes: number;
}

/** The progress of a replica, as its leader reports it. */
export interface ReplicaProgress {
  readonly replicaId: number;
  /** The replica answers, and lags so little that it may become a voter, or lead. */
  readonly caughtUp: boolean;
  /** Since when the leader has not heard from it, on the master's monotonic clock; undefined while it answers. */
  readonly silentSinceMs?: number | undefined;
}

export interface RangeInfo {
  readonly descriptor: RangeDescriptor;
  /** The leading node; undefined while none is known. */
  readonly leader: number | undefined;
  readonly term: number;
  readonly progress: readonly ReplicaProgress[];
  /** The configuration is joint. */
  readonly joint: boolean;
  /** A membership change is in the log and not applied yet. */
  readonly changePending: boolean;
  readonly bytes: number;
  readonly readsPerS: number;
  readonly writesPerS: number;
  readonly readBytesPerS: number;
  readonly writeBytesPerS: number;
  /** Whether the range begins where a person chose (range-registry.ts RR6). */
  readonly chosen: boolean;
  /** The leader's remark about the range's size, for people; absent or empty: none. */
  readonly sizeRemark?: string;
}

/**
 * What a node carries. Leaders do the reads and coordinate the writes; every replica applies the writes. Loads are per
 * second.
 */
export interface NodeTotals {
  readonly leaders: number;
  readonly replicas: number;
  readonly bytes: number;
  /** Reads and writes of the ranges that it leads. */
  readonly leaderLoad: number;
  /** Writes of all its replicas, plus the share of the reads that each replica would have if all led in turn. */
  readonly replicaLoad: number;
}

export const NO_TOTALS: NodeTotals = { leaders: 0, replicas: 0, bytes: 0, leaderLoad: 0, replicaLoad: 0 };

export function addTotals(a: NodeTotals, b: NodeTotals, sign: 1 | -1 = 1): NodeTotals {
  return {
    leaders: a.leaders + sign * b.leaders,
    replicas: a.replicas + sign * b.replicas,
    bytes: a.bytes + sign * b.bytes,
    leaderLoad: a.leaderLoad + sign * b.leaderLoad,
    replicaLoad: a.replicaLoad + sign * b.replicaLoad,
  };
}

export function replicaLoadOf({ descriptor, readsPerS, writesPerS }: RangeInfo): number {
  return writesPerS + readsPerS / descriptor.replicas.length;
}

/** What one replica of a range adds to its node. */
export function replicaTotals(range: RangeInfo): NodeTotals {
  return { ...NO_TOTALS, replicas: 1, bytes: range.bytes, replicaLoad: replicaLoadOf(range) };
}

/** What leading a range adds to a node. */
export function leaderTotals(range: RangeInfo): NodeTotals {
  return { ...NO_TOTALS, leaders: 1, leaderLoad: range.readsPerS + range.writesPerS };
}

/** A node with what it carries. */
export interface NodeView {
  readonly info: NodeInfo;
  readonly totals: NodeTotals;
  /** Ids of the ranges with a replica here, learners included. */
  readonly ranges: ReadonlySet<number>;
  /** Ids of the ranges led from here. */
  readonly leads: ReadonlySet<number>;
}

class NodeRecord implements NodeView {
  info: NodeInfo;
  totals = NO_TOTALS;
  readonly ranges = new Set<number>();
  readonly leads = new Set<number>();

  constructor(info: NodeInfo) {
    this.info = info;
  }
}

/** Read-only for checkers and schedulers; the receiver of node reports writes it. */
export type ClusterView = Pick<
  ClusterModel,
  'node' | 'nodes' | 'range' | 'ranges' | 'rangeCount' | 'idsInKeyOrder' | 'neighbour' | 'version'
>;

export class ClusterModel {
  readonly #nodes = new Map<number, NodeRecord>();
  readonly #ranges = new Map<number, RangeInfo>();
  /** Nodes that ranges name and that are not known (yet). */
  readonly #unknown = new Map<number, NodeRecord>();
  #inKeyOrder: readonly number[] | undefined;
  readonly #positions = new Map<number, number>();
  #version = 0;

  /** Grows whenever a range comes, changes or goes. */
  get version(): number {
    return this.#version;
  }

  setNode(info: NodeInfo): void {
    const known = this.#nodes.get(info.nodeId);
    if (known !== undefined) {
      known.info = info;
      return;
    }
    const record = this.#unknown.get(info.nodeId) ?? new NodeRecord(info);
    record.info = info;
    this.#unknown.delete(info.nodeId);
    this.#nodes.set(info.nodeId, record);
  }

  /** Returns whether the report was accepted (C2). */
  setRange(info: RangeInfo): boolean {
    const { rangeId } = info.descriptor;
    const known = this.#ranges.get(rangeId);
    if (known !== undefined && isOlder(info, known)) return false;
    if (known !== undefined && isSameInfo(info, known)) return true;
    this.#version++;
    if (known !== undefined) this.#count(known, -1);
    if (known === undefined || !isSameSpan(known.descriptor, info.descriptor)) this.#inKeyOrder = undefined;
    this.#ranges.set(rangeId, info);
    this.#count(info, 1);
    return true;
  }

  /** A range that was merged into another. */
  removeRange(rangeId: number): void {
    const known = this.#ranges.get(rangeId);
    if (known === undefined) return;
    this.#count(known, -1);
    this.#ranges.delete(rangeId);
    this.#inKeyOrder = undefined;
    this.#version++;
  }

  node(nodeId: number): NodeView | undefined {
    return this.#nodes.get(nodeId);
  }

  nodes(): IterableIterator<NodeView> {
    return this.#nodes.values();
  }

  range(rangeId: number): RangeInfo | undefined {
    return this.#ranges.get(rangeId);
  }

  ranges(): IterableIterator<RangeInfo> {
    return this.#ranges.values();
  }

  get rangeCount(): number {
    return this.#ranges.size;
  }

  /** Ids of all ranges by start key; sorted again after spans have changed. */
  idsInKeyOrder(): readonly number[] {
    if (this.#inKeyOrder !== undefined) return this.#inKeyOrder;
    const sorted = [...this.#ranges.values()].sort(
      (a, b) => compareBytes(a.descriptor.start, b.descriptor.start) || a.descriptor.rangeId - b.descriptor.rangeId,
    );
    this.#inKeyOrder = sorted.map((range) => range.descriptor.rangeId);
    this.#positions.clear();
    for (const [position, rangeId] of this.#inKeyOrder.entries()) this.#positions.set(rangeId, position);
    return this.#inKeyOrder;
  }

  /** The range that begins where this one ends; undefined for the last one, and before a gap. */
  neighbour(rangeId: number): RangeInfo | undefined {
    const ids = this.idsInKeyOrder();
    const range = this.#ranges.get(rangeId);
    const next = this.#ranges.get(ids[(this.#positions.get(rangeId) ?? ids.length) + 1] ?? 0);
    if (range === undefined || next === undefined || range.descriptor.end.length === 0) return undefined;
    return equalBytes(range.descriptor.end, next.descriptor.start) ? next : undefined;
  }

  /** C1. */
  #count(range: RangeInfo, sign: 1 | -1): void {
    const { rangeId, replicas } = range.descriptor;
    const replica = replicaTotals(range);
    for (const { nodeId } of replicas) {
      const record = this.#record(nodeId);
      record.totals = addTotals(record.totals, replica, sign);
      if (sign === 1) record.ranges.add(rangeId);
      else record.ranges.delete(rangeId);
    }
    if (range.leader === undefined) return;
    const record = this.#record(range.leader);
    record.totals = addTotals(record.totals, leaderTotals(range), sign);
    if (sign === 1) record.leads.add(rangeId);
    else record.leads.delete(rangeId);
  }

  #record(nodeId: number): NodeRecord {
    const known = this.#nodes.get(nodeId) ?? this.#unknown.get(nodeId);
    if (known !== undefined) return known;
    const record = new NodeRecord(UNKNOWN_NODE);
    this.#unknown.set(nodeId, record);
    return record;
  }
}

const UNKNOWN_NODE: NodeInfo = {
  nodeId: 0,
  liveness: 'down',
  livenessSinceMs: 0,
  duty: 'removed',
  labels: {},
  capacityBytes: 0,
  availableBytes: 0,
};

/** C2. Compares epochs first: the leader of a later term may not have applied yet what an earlier leader has. */
function isOlder(report: RangeInfo, known: RangeInfo): boolean {
  const [now, before] = [report.descriptor.epoch, known.descriptor.epoch];
  if (now.version !== before.version) return now.version < before.version;
  if (now.confVersion !== before.confVersion) return now.confVersion < before.confVersion;
  return report.term < known.term;
}

function isSameInfo(a: RangeInfo, b: RangeInfo): boolean {
  return (
    a.descriptor === b.descriptor &&
    a.leader === b.leader &&
    a.term === b.term &&
    a.joint === b.joint &&
    a.changePending === b.changePending &&
    a.bytes === b.bytes &&
    a.readsPerS === b.readsPerS &&
    a.writesPerS === b.writesPerS &&
    a.readBytesPerS === b.readBytesPerS &&
    a.writeBytesPerS === b.writeBytesPerS &&
    a.chosen === b.chosen &&
    a.sizeRemark === b.sizeRemark &&
    a.progress.length === b.progress.length &&
    a.progress.every((one, i) => isSameProgress(one, b.progress[i]))
  );
}

function isSameProgress(a: ReplicaProgress, b: ReplicaProgress | undefined): boolean {
  return a.replicaId === b?.replicaId && a.caughtUp === b.caughtUp && a.silentSinceMs === b.silentSinceMs;
}

function isSameSpan(a: RangeDescriptor, b: RangeDescriptor): boolean {
  return equalBytes(a.start, b.start) && equalBytes(a.end, b.end);
}

// ------------------------------------------------------------------------------------------------ questions

export function replicaOn(range: RangeInfo, nodeId: number): ReplicaDescriptor | undefined {
  return range.descriptor.replicas.find((replica) => replica.nodeId === nodeId);
}

export function voterNodes(range: RangeInfo): readonly number[] {
  return range.descriptor.replicas.filter(({ type }) => type === 'voter').map(({ nodeId }) => nodeId);
}

export function learnerNodes(range: RangeInfo): readonly number[] {
  return range.descriptor.replicas.filter(({ type }) => type === 'learner').map(({ nodeId }) => nodeId);
}

export function progressOn(range: RangeInfo, nodeId: number): ReplicaProgress | undefined {
  const replicaId = replicaOn(range, nodeId)?.replicaId;
  return range.progress.find((progress) => progress.replicaId === replicaId);
}

/** Whether the replica there answers its leader, and its node is heard. */
export function isLive(model: ClusterView, range: RangeInfo, nodeId: number): boolean {
  const info = model.node(nodeId)?.info;
  if (info === undefined || info.liveness === 'down' || info.duty === 'removed') return false;
  return range.leader === nodeId || progressOn(range, nodeId)?.silentSinceMs === undefined;
}

/** Whether more than half of these voters are live. */
export function hasLiveQuorum(model: ClusterView, range: RangeInfo, voters: readonly number[]): boolean {
  return voters.filter((nodeId) => isLive(model, range, nodeId)).length > voters.length / 2;
}
