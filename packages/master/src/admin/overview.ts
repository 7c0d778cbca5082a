/** The administrators' view of the cluster, built from the metadata and the reports of nodes. */
import { compareBytes } from '@remora/base';
import {
  type HotRangesRequest,
  type LeaderReport,
  type LoadMeasure,
  type NodeDescriptor,
  type NodeHeartbeat,
  type NodeOverview,
  type NodeSpace,
  type NodeState,
  publicNode,
  type RangeDescriptor,
  type RangeOverview,
  type RangesOverview,
  type RangesRequest,
  type ReplicaReport,
} from '@remora/protocol';
import type { DutyRecord } from '../metadata/master-state.ts';

/** A node's last heartbeat, and how long ago it was. */
export interface LastHeard {
  readonly silentMs: number;
  readonly heartbeat: NodeHeartbeat;
}

/** The master's knowledge at one moment. */
export interface Knowledge {
  readonly nodes: readonly NodeDescriptor[];
  readonly ranges: readonly RangeDescriptor[];
  readonly heard: ReadonlyMap<number, LastHeard>;
  stateOf(nodeId: number): NodeState;
  dutyOf(nodeId: number): DutyRecord;
  /** Whether the node is a member of the group of the masters. */
  isMaster(nodeId: number): boolean;
  /** The range into which a range was merged; undefined if it was not, or if that is not known yet. */
  readonly mergedInto: (rangeId: number) => number | undefined;
  readonly wallMs: number;
  /** A restore has begun, and has not ended. */
  readonly isRestoring: boolean;
}

export function nodeOverviews(known: Knowledge): readonly NodeOverview[] {
  const { nodes, heard, stateOf, dutyOf, wallMs } = known;
  const held = heldByNode(rangeOverviews(known));
  return [...nodes]
    .sort((a, b) => a.nodeId - b.nodeId)
    .map((descriptor) => {
      const last = heard.get(descriptor.nodeId);
      const { duty, untilMs } = dutyOf(descriptor.nodeId);
      const reports = last?.heartbeat.ranges ?? [];
      return {
        descriptor: publicNode(descriptor),
        state: stateOf(descriptor.nodeId),
        duty,
        maintenanceLeftMs: Math.max(0, untilMs - wallMs),
        labels: last?.heartbeat.labels ?? {},
        space: last?.heartbeat.space ?? NO_SPACE,
        silentMs: last?.silentMs ?? -1,
        ...(held.get(descriptor.nodeId) ?? { replicas: 0, leaders: 0 }),
        bytes: reports.reduce((sum, { bytes }) => sum + bytes, 0),
        isMaster: known.isMaster(descriptor.nodeId),
      };
    });
}

interface Held {
  replicas: number;
  leaders: number;
}

/**
 * From the ranges' descriptors, not from the nodes' reports: a silent node has not lost its replicas, but may have lost
 * its leaders.
 */
function heldByNode(ranges: readonly RangeOverview[]): ReadonlyMap<number, Held> {
  const held = new Map<number, Held>();
  for (const { descriptor, leaderNode } of ranges) {
    for (const { nodeId } of descriptor.replicas) {
      const of = held.get(nodeId) ?? { replicas: 0, leaders: 0 };
      of.replicas += 1;
      if (nodeId === leaderNode) of.leaders += 1;
      held.set(nodeId, of);
    }
  }
  return held;
}

/** For a node that was not heard. */
const NO_SPACE: NodeSpace = { capacityBytes: 0, availableBytes: 0 };

/** One page (see `RangesRequest`). */
export function rangesPage(known: Knowledge, { from, limit, rangeId }: RangesRequest): RangesOverview {
  const wanted =
    rangeId === 0
      ? known.ranges.filter(({ end }) => end.length === 0 || compareBytes(end, from) > 0).sort(byStart)
      : known.ranges.filter((range) => range.rangeId === rangeId);
  const page = wanted.slice(0, limit);
  const reports = reportsOf(known, new Set(page.map((range) => range.rangeId)));
  const ranges = page.map((descriptor) => rangeOverview(descriptor, reports.get(descriptor.rangeId) ?? []));
  return { ranges, more: wanted.length > limit };
}

/** All of them, in the order of their keys. */
export function rangeOverviews(known: Knowledge): readonly RangeOverview[] {
  return rangesPage(known, { from: new Uint8Array(0), limit: Number.POSITIVE_INFINITY, rangeId: 0 }).ranges;
}

/** The hottest first (see `HotRangesRequest`); of equal ones the one with the lower id. */
export function hotRanges(known: Knowledge, { by, limit }: HotRangesRequest): RangesOverview {
  const loads = rangeOverviews(known).flatMap((range) => {
    const lead = leaderReport(range);
    return lead === undefined ? [] : [{ range, load: LOADS[by](lead) }];
  });
  loads.sort((a, b) => b.load - a.load || a.range.descriptor.rangeId - b.range.descriptor.rangeId);
  return { ranges: loads.slice(0, limit).map(({ range }) => range), more: loads.length > limit };
}

const LOADS: Readonly<Record<LoadMeasure, (lead: LeaderReport) => number>> = {
  requests: ({ readsPerS, writesPerS }) => readsPerS + writesPerS,
  reads: ({ readsPerS }) => readsPerS,
  readBytes: ({ readBytesPerS }) => readBytesPerS,
  writes: ({ writesPerS }) => writesPerS,
  writeBytes: ({ writeBytesPerS }) => writeBytesPerS,
};

/** The report of the range's leader; undefined while none is known. */
export function leaderReport({ leaderNode, reports }: RangeOverview): LeaderReport | undefined {
  return reports.find(({ nodeId }) => nodeId === leaderNode)?.report.lead;
}

function byStart(a: RangeDescriptor, b: RangeDescriptor): number {
  return compareBytes(a.start, b.start) || a.rangeId - b.rangeId;
}

function reportsOf({ heard }: Knowledge, wanted: ReadonlySet<number>): ReadonlyMap<number, ReplicaReport[]> {
  const found = new Map<number, ReplicaReport[]>();
  for (const [nodeId, { silentMs, heartbeat }] of heard) {
    for (const report of heartbeat.ranges) {
      if (!wanted.has(report.rangeId)) continue;
      const list = found.get(report.rangeId) ?? [];
      list.push({ nodeId, silentMs, report });
      found.set(report.rangeId, list);
    }
  }
  return found;
}

/** If several nodes claim to lead, the one with the newest term does. */
function rangeOverview(descriptor: RangeDescriptor, reports: readonly ReplicaReport[]): RangeOverview {
  let leader: ReplicaReport | undefined;
  for (const each of reports) {
    if (each.report.lead !== undefined && (leader === undefined || each.report.term > leader.report.term))
      leader = each;
  }
  return { descriptor, leaderNode: leader?.nodeId ?? 0, reports };
}
