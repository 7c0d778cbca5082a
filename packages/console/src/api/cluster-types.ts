/** The answers of `/v1/cluster`, as they are in JSON. Times are in ms, sizes in bytes. */

/** A place in the order of all keys, as `remora admin` shows it: `key:orders/42`, `lock:orders/42`; `-` is no bound. */
export type RoutingKeyJson = string;

export interface ClusterJson {
  readonly clusterId: string;
  /** The node that answers. */
  readonly answeringNode: number;
  /** Absent: the masters have no leader, and only what this node knows by itself is shown. */
  readonly masterLeader?: number;
  readonly leadingMs?: number;
  readonly version: { readonly inForce: string; readonly newest: string };
  readonly authentication: boolean;
  readonly nodes: readonly NodeJson[];
  readonly health: HealthJson;
}

export interface NodeJson {
  readonly id: number;
  readonly name: string;
  readonly state: string;
  readonly duty: string;
  readonly roles: readonly string[];
  readonly isMaster: boolean;
  readonly version: string;
  readonly peerAddress: string;
  readonly clientAddress: string;
  readonly httpAddress: string;
  readonly silentMs: number;
  readonly maintenanceLeftMs: number;
  readonly replicas: number;
  readonly leaders: number;
  readonly bytes: number;
  readonly capacityBytes: number;
  readonly availableBytes: number;
  readonly labels: Readonly<Record<string, string>>;
}

export interface HealthJson {
  readonly nodes: number;
  readonly ranges: number;
  readonly conditions: readonly ConditionJson[];
}

/** See docs/reference/conditions.md. */
export interface ConditionJson {
  readonly name: string;
  readonly severity: string;
  readonly scope: string;
  /** 0: the condition is of no range, or of no node. */
  readonly rangeId: number;
  readonly nodeId: number;
  readonly text: string;
  readonly advice: string;
  readonly docs: string;
}

export interface RangesJson {
  readonly ranges: readonly RangeJson[];
  /** Where the next page begins: `from` of the next request. Absent: there is none. */
  readonly next?: RoutingKeyJson;
}

export interface RangeJson {
  readonly id: number;
  readonly start: RoutingKeyJson;
  readonly end: RoutingKeyJson;
  readonly epoch: { readonly confVersion: number; readonly version: number };
  /** 0: none is known. */
  readonly leaderNode: number;
  readonly revisionSource: string;
  readonly replicas: readonly ReplicaJson[];
  /** Absent: its leader did not answer. */
  readonly state?: RangeStateJson;
  readonly load?: RangeLoadJson;
}

export interface ReplicaJson {
  readonly id: number;
  readonly nodeId: number;
  readonly type: string;
  readonly state: string;
  /** Entries that it lacks; -1: not known. */
  readonly logBehind: number;
  readonly commitBehind: number;
  readonly bytes: number;
  readonly silentMs: number;
}

export interface RangeStateJson {
  readonly term: number;
  readonly commit: number;
  readonly applied: number;
  readonly revision: number;
  readonly compactRevision: number;
  readonly bytes: number;
  readonly keys: number;
  readonly leases: number;
  readonly watches: number;
}

export interface RangeLoadJson {
  readonly readsPerS: number;
  readonly readBytesPerS: number;
  readonly writesPerS: number;
  readonly writeBytesPerS: number;
}

export interface OperatorsJson {
  readonly operators: readonly OperatorJson[];
}

export interface OperatorJson {
  readonly id: number;
  readonly rangeId: number;
  readonly kind: string;
  readonly status: string;
  readonly reason: string;
  readonly steps: readonly string[];
  /** The index of the step under way. */
  readonly step: number;
  readonly ageMs: number;
  /** How long ago it ended; 0: it is under way. */
  readonly endedMs: number;
  readonly outcome: string;
}

export interface SchedulersJson {
  readonly schedulers: readonly SchedulerJson[];
}

export interface SchedulerJson {
  readonly name: string;
  readonly description: string;
  /** How long it stays paused; 0: it runs. */
  readonly pausedMs: number;
  readonly last: string;
  readonly settings: readonly string[];
}

export interface RebalanceJson extends SchedulersJson {
  readonly changes: readonly {
    readonly rangeId: number;
    readonly kind: string;
    readonly reason: string;
    readonly steps: readonly string[];
  }[];
}

export interface SettingsJson {
  readonly settings: readonly SettingJson[];
}

export interface SettingJson {
  readonly name: string;
  readonly value: string;
  readonly defaultValue: string;
  readonly placeholder: string;
  readonly description: string;
}

export interface UpgradeJson {
  readonly inForce: string;
  readonly newest: string;
  readonly nodes: readonly {
    readonly id: number;
    readonly name: string;
    readonly build: string;
    readonly state: string;
    readonly canWriteFrom: string;
    readonly canWriteTo: string;
    readonly knows: string;
  }[];
  readonly blockers: readonly string[];
}

/** The reasons of the schedulers, a line each. */
export interface WhyJson {
  readonly lines: readonly string[];
}

/** `GET /v1/cluster/activity`: one value for each of `times`; null where nothing was reported. */
export interface ActivityJson {
  readonly stepMs: number;
  readonly times: readonly number[];
  readonly nodes: readonly NodeActivityJson[];
}

export interface NodeActivityJson {
  readonly nodeId: number;
  readonly requestsPerS: readonly (number | null)[];
  readonly readsPerS: readonly (number | null)[];
  readonly writesPerS: readonly (number | null)[];
  readonly p50Ms: readonly (number | null)[];
  readonly p99Ms: readonly (number | null)[];
  readonly fsyncP99Ms: readonly (number | null)[];
}
