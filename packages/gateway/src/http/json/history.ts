/**
 * The answers of `/v1/cluster/activity` and `/v1/cluster/heat`, and the events of `/v1/cluster/live`, as they are in
 * JSON. Durations are in ms; moments are in ms since 1970, by the clock of the node that answers.
 */

import type { ClusterJson, NodeJson, OperatorJson, RangeLoadJson, RoutingKeyJson, SchedulerJson } from './cluster.ts';

/** `GET /v1/cluster/activity`: rates and quantiles of each node, minute by minute. */
export interface ActivityJson {
  /** The length of a minute. */
  readonly stepMs: number;
  /** When each minute began, the oldest first, without gaps. */
  readonly times: readonly number[];
  /** In the order of their ids: the nodes that reported in one of these minutes. */
  readonly nodes: readonly NodeActivityJson[];
}

/** Each list has a number for each of `times`; null: the node did not report it. */
export interface NodeActivityJson {
  readonly nodeId: number;
  /** Requests to ranges that the node's gateway sent: reads, writes, locks and others. */
  readonly requestsPerS: readonly (number | null)[];
  readonly readsPerS: readonly (number | null)[];
  readonly writesPerS: readonly (number | null)[];
  /** Locks and leases. */
  readonly locksPerS: readonly (number | null)[];
  /** How long requests took; null also where there were none. Estimated from a histogram. */
  readonly p50Ms: readonly (number | null)[];
  readonly p99Ms: readonly (number | null)[];
  /** Synced writes to the log of the node. */
  readonly fsyncP99Ms: readonly (number | null)[];
  /** From the proposal of an entry by a leader on the node until it is applied. */
  readonly commitP99Ms: readonly (number | null)[];
}

export type HeatMeasure = 'reads' | 'writes' | 'readBytes' | 'writeBytes';

/** `GET /v1/cluster/heat`: the load by time and key. */
export interface HeatJson {
  readonly stepMs: number;
  readonly what: HeatMeasure;
  /** When each minute began, the oldest first, without gaps. */
  readonly times: readonly number[];
  /** Column i is from border i to border i + 1, so there is one border more than columns. */
  readonly borders: readonly RoutingKeyJson[];
  /** For each of `times`: requests or bytes in that minute, by column. Null: nothing is known of the minute. */
  readonly values: readonly (readonly number[] | null)[];
  /** The ranges that lie in the span, in order; empty if there are more than 1,000. */
  readonly ranges: readonly { readonly id: number; readonly start: RoutingKeyJson }[];
}

/**
 * A topic of `GET /v1/cluster/live`, and the name of its events. The first event of a topic has its whole state, and
 * so do later ones, except those of `ranges`. An event follows when the state has changed, at most one a second.
 */
export type LiveTopic = 'overview' | 'nodes' | 'operators' | 'schedulers' | 'ranges' | 'now';

/** Event `overview`. Durations are as of `atMs`: that they have grown is no change. */
export interface LiveOverviewJson extends ClusterJson {
  readonly atMs: number;
}

/** Event `nodes`. */
export interface LiveNodesJson {
  readonly atMs: number;
  readonly nodes: readonly NodeJson[];
}

/** Event `operators`: those under way, and those that ended lately. */
export interface LiveOperatorsJson {
  readonly atMs: number;
  readonly operators: readonly OperatorJson[];
}

/** Event `schedulers`. */
export interface LiveSchedulersJson {
  readonly atMs: number;
  readonly schedulers: readonly SchedulerJson[];
}

/** Event `ranges`. */
export interface LiveRangesJson {
  readonly atMs: number;
  /** True: these are all ranges. False: the others have not changed. */
  readonly whole: boolean;
  readonly ranges: readonly LiveRangeJson[];
  /** Ids of ranges that have ended. */
  readonly removed: readonly number[];
}

export interface LiveRangeJson {
  readonly id: number;
  readonly start: RoutingKeyJson;
  readonly end: RoutingKeyJson;
  /** 0: none is known. */
  readonly leaderNode: number;
  /** By node: `voter`, `learner` and so on. */
  readonly replicas: readonly { readonly nodeId: number; readonly type: string }[];
  /** Absent: its leader has not reported. */
  readonly bytes?: number;
  readonly keys?: number;
  /** Rounded to three digits. */
  readonly load?: RangeLoadJson;
}

/** Event `now`: rates and quantiles of the last seconds. */
export interface LiveNowJson {
  readonly atMs: number;
  /** In the order of their ids. A node that does not answer is missing. */
  readonly nodes: readonly NodeNowJson[];
}

/** Null: there was nothing to measure, or it is not measured there. See `NodeActivityJson`. */
export interface NodeNowJson {
  readonly nodeId: number;
  /** How long the node counted for this. */
  readonly spanMs: number;
  readonly requestsPerS: number | null;
  readonly readsPerS: number | null;
  readonly writesPerS: number | null;
  readonly locksPerS: number | null;
  readonly p50Ms: number | null;
  readonly p99Ms: number | null;
  readonly fsyncP99Ms: number | null;
  readonly commitP99Ms: number | null;
}

/** Event `problem`: a topic cannot be told now. Its next event says that it can be told again. */
export interface LiveProblemJson {
  readonly atMs: number;
  readonly topic: LiveTopic;
  readonly code: string;
  readonly message: string;
}
