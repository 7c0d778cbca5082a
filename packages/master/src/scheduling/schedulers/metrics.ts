/** A metric by which nodes are compared. */
import { type NodeTotals, type RangeInfo, replicaLoadOf } from '../cluster-model.ts';
import type { Settings } from '../settings.ts';
import { countGap } from './scheduler.ts';

export interface Metric {
  /** The subject in "replicas are spread unevenly". */
  readonly what: string;
  /** The amount that moves with one replica, or with one leader, of a range. */
  readonly of: (range: RangeInfo) => number;
  readonly total: (totals: NodeTotals) => number;
  /** The smallest difference between two nodes that justifies moves. */
  readonly gap: (mean: number, settings: Settings) => number;
  /** The least amount that a single proposal has to shift for such a gap. */
  readonly gain: (gap: number) => number;
}

export const REPLICAS: Metric = {
  what: 'replicas',
  of: () => 1,
  total: ({ replicas }) => replicas,
  gap: (mean, settings) => countGap(mean, settings.countTolerancePercent),
  gain: () => 1,
};

export const LEADERS: Metric = {
  what: 'leaders',
  of: () => 1,
  total: ({ leaders }) => leaders,
  gap: (mean, settings) => countGap(mean, settings.countTolerancePercent),
  gain: () => 1,
};

export const BYTES: Metric = {
  what: 'bytes',
  of: ({ bytes }) => bytes,
  total: ({ bytes }) => bytes,
  gap: (mean, settings) => Math.max(1, settings.bytesGapMin, (mean * settings.bytesTolerancePercent) / 100),
  gain: quarter,
};

export const REPLICA_LOAD: Metric = {
  what: 'requests per second',
  of: replicaLoadOf,
  total: ({ replicaLoad }) => replicaLoad,
  gap: loadGap,
  gain: quarter,
};

export const LEADER_LOAD: Metric = {
  what: 'requests per second',
  of: ({ readsPerS, writesPerS }) => readsPerS + writesPerS,
  total: ({ leaderLoad }) => leaderLoad,
  gap: loadGap,
  gain: quarter,
};

function loadGap(mean: number, settings: Settings): number {
  return Math.max(1, settings.loadGapMin, (mean * settings.loadTolerancePercent) / 100);
}

/** The shift must justify the move, and must leave a clearly smaller gap. */
function quarter(gap: number): number {
  return gap / 4;
}
