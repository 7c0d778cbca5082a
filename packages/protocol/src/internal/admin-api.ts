import type { Bytes } from '@remora/base';
import type { NodeState, PublicNode, RangeDescriptor } from './descriptor.ts';
import type { HealthCondition } from './health.ts';
import type { NodeSpace, RangeReport } from './master-api.ts';
import type { NodeDuty } from './steering-api.ts';

/** What the master's leader tells operators: of the cluster as it is known from what nodes reported. */
export interface NodesOverview {
  readonly clusterId: string;
  readonly masterLeader: number;
  /** How long this master has been leading, in ms: what it knows of nodes is no older. */
  readonly leadingMs: number;
  readonly nodes: readonly NodeOverview[];
}

export interface NodeOverview {
  readonly descriptor: PublicNode;
  readonly state: NodeState;
  readonly duty: NodeDuty;
  /** How long its maintenance window lasts yet, in ms; 0 when there is none. */
  readonly maintenanceLeftMs: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly space: NodeSpace;
  /** Since its last heartbeat, in ms; -1 if this master has heard none. */
  readonly silentMs: number;
  /** As the ranges have it: replicas of a node that is silent count, too. */
  readonly replicas: number;
  readonly leaders: number;
  /** As its last heartbeat has it. */
  readonly bytes: number;
  /** It is a member of the group of the masters. */
  readonly isMaster: boolean;
}

/** Most ranges in one answer. */
export const RANGES_PAGE_MAX = 500;

/** One page of the ranges in the order of their keys, or one range. */
export interface RangesRequest {
  /** A routing key: the first range is the one that ends behind it. */
  readonly from: Bytes;
  /** From 1 to `RANGES_PAGE_MAX`. */
  readonly limit: number;
  /** Only this range; 0: all. */
  readonly rangeId: number;
}

/** By requests per second, or by bytes per second. */
export type LoadMeasure = 'requests' | 'reads' | 'readBytes' | 'writes' | 'writeBytes';

/** The ranges with the most load first; those that nobody reports are left out. */
export interface HotRangesRequest {
  readonly by: LoadMeasure;
  /** From 1 to `RANGES_PAGE_MAX`. */
  readonly limit: number;
}

export interface RangesOverview {
  readonly ranges: readonly RangeOverview[];
  /** There are more: ask again from the end of the last one. */
  readonly more: boolean;
}

export interface RangeOverview {
  readonly descriptor: RangeDescriptor;
  /** The node that leads it as far as known; 0: none. */
  readonly leaderNode: number;
  readonly reports: readonly ReplicaReport[];
}

/** What a node said of its replica, and how long ago in ms. */
export interface ReplicaReport {
  readonly nodeId: number;
  readonly silentMs: number;
  readonly report: RangeReport;
}

export interface CheckReport {
  readonly nodes: number;
  readonly ranges: number;
  /** The worst first. */
  readonly conditions: readonly HealthCondition[];
}

/** One setting of the cluster, with values as they are written. */
export interface SettingInfo {
  readonly name: string;
  readonly value: string;
  readonly defaultValue: string;
  /** What a value looks like: `<duration>`. */
  readonly placeholder: string;
  readonly description: string;
}

export interface SetSettingRequest {
  readonly name: string;
  /** Empty: back to the default. */
  readonly value: string;
}

export interface TransferLeaderRequest {
  readonly rangeId: number;
  readonly toNode: number;
}
