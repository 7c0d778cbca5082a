import type { NodeInfo, RangeInfo } from '../../src/scheduling/cluster-model.ts';
import { Scheduling } from '../../src/scheduling/scheduling.ts';
import { DEFAULT_SETTINGS, type Settings } from '../../src/scheduling/settings.ts';
import type { SchedulingView } from '../../src/scheduling/view.ts';

const GIB = 1024 ** 3;
/** Long after everything began. */
export const NOW_MS = 10_000_000;

export function nodeInfo(nodeId: number, given: Partial<NodeInfo> = {}): NodeInfo {
  return {
    nodeId,
    liveness: 'up',
    livenessSinceMs: 0,
    duty: 'serving',
    labels: {},
    capacityBytes: 100 * GIB,
    availableBytes: 90 * GIB,
    ...given,
  };
}

export interface RangeGiven extends Partial<RangeInfo> {
  /** The first of them leads unless `leader` says otherwise. */
  readonly voters: readonly number[];
  readonly learners?: readonly number[];
  readonly confVersion?: number;
  readonly version?: number;
  /** Nodes whose replicas lag far behind. */
  readonly behind?: readonly number[];
  /** Nodes whose replicas are silent, and since when. */
  readonly silent?: Readonly<Record<number, number>>;
  readonly start?: string;
  readonly end?: string;
}

/** The replica of range R on node N has the id 100 R + N. */
export function rangeInfo(rangeId: number, given: RangeGiven): RangeInfo {
  const {
    voters,
    learners = [],
    confVersion = 1,
    version = 1,
    behind = [],
    silent = {},
    start = '',
    end = '',
    ...rest
  } = given;
  const replicaId = (nodeId: number): number => 100 * rangeId + nodeId;
  const leader = voters[0];
  return {
    descriptor: {
      rangeId,
      start: Buffer.from(start),
      end: Buffer.from(end),
      epoch: { confVersion, version },
      replicas: [
        ...voters.map((nodeId) => ({ replicaId: replicaId(nodeId), nodeId, type: 'voter' as const })),
        ...learners.map((nodeId) => ({ replicaId: replicaId(nodeId), nodeId, type: 'learner' as const })),
      ],
      revisionSource: 'master',
    },
    leader,
    term: 1,
    progress: [...voters, ...learners]
      .filter((nodeId) => nodeId !== leader)
      .map((nodeId) => ({
        replicaId: replicaId(nodeId),
        caughtUp: !behind.includes(nodeId),
        silentSinceMs: silent[nodeId],
      })),
    joint: false,
    changePending: false,
    bytes: 1_000_000,
    readsPerS: 0,
    writesPerS: 0,
    readBytesPerS: 0,
    writeBytesPerS: 0,
    chosen: false,
    ...rest,
  };
}

export interface BedGiven {
  readonly nodes: readonly NodeInfo[];
  readonly ranges?: readonly RangeInfo[];
  readonly settings?: Partial<Settings>;
}

/** Scheduling that has heard of these; it hands out replica ids from 9001 on. */
export function schedulingBed({ nodes, ranges = [], settings = {} }: BedGiven): Scheduling {
  let nextReplicaId = 9_001;
  const scheduling = new Scheduling({
    settings: { ...DEFAULT_SETTINGS, ...settings },
    nextReplicaId: () => nextReplicaId++,
  });
  for (const node of nodes) scheduling.nodeReported(node);
  for (const range of ranges) scheduling.rangeReported(range, NOW_MS);
  return scheduling;
}

export function viewOf(given: BedGiven): SchedulingView {
  return schedulingBed(given).view(NOW_MS);
}

export function upNodes(count: number): readonly NodeInfo[] {
  return Array.from({ length: count }, (_, i) => nodeInfo(i + 1));
}
