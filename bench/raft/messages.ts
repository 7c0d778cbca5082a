/** What the processes of the Raft benchmark tell each other over their IPC channels. */
import type { FrameTraffic, GroupId, GroupStatus, HostOptions, HostStats, NodeId } from '@remora/raft';

/** What a node process is told at its start, as JSON in its only argument. */
export interface NodeArguments {
  readonly nodeId: NodeId;
  readonly nodeCount: number;
  /** 0 for any free one. */
  readonly port: number;
  /** Ids count from `FIRST_GROUP`. */
  readonly groupCount: number;
  readonly log: 'memory' | 'disk';
  /** For the log. Kept over a restart. */
  readonly dir: string;
  /** Who campaigns first: node 1 for every group, or each node for its share. */
  readonly leaders: 'one' | 'spread';
  /** Interval at which the state machines say that they are durable, which lets the log go; 0: never. */
  readonly checkpointMs: number;
  readonly hostOptions: Partial<HostOptions>;
  /** Bytes that are added to a snapshot of the first group. */
  readonly snapshotBytes: number;
}

export type NodeCommand =
  /** Ports of all nodes, in the order of their ids: the node begins. */
  { readonly type: 'begin'; readonly ports: readonly number[] } | { readonly type: 'status' };

export type NodeReport =
  | { readonly type: 'listening'; readonly port: number }
  /** The log is read and the groups are there. */
  | { readonly type: 'begun'; readonly recoveryMs: number }
  | ({ readonly type: 'status' } & NodeStatus);

export interface NodeStatus {
  /** Groups that this node leads and whose state it knows to be current. */
  readonly leads: readonly GroupId[];
  /** Operations applied since the start, over all groups. */
  readonly operations: number;
  /** Over what was applied: equal wherever the same was. */
  readonly checksum: number;
  readonly host: Readonly<HostStats>;
  readonly log: { readonly bytes: number; readonly segments: number; readonly syncs: number; readonly appends: number };
  readonly frames: Readonly<FrameTraffic> | undefined;
  /** Of the first group. */
  readonly sample: GroupStatus | undefined;
  readonly rssBytes: number;
  readonly heapBytes: number;
}

export const FIRST_GROUP: GroupId = 2;

/** What a load process is told, as JSON in its only argument. */
export interface RaftLoadArguments {
  /** Each group, and the port of its leader's node. */
  readonly targets: readonly { readonly groupId: GroupId; readonly port: number }[];
  readonly inflightPerGroup: number;
  readonly payloadBytes: number;
  /**
   * Whether each operation is an entry of its own, or those that one loop turn of the load makes for a group share one.
   */
  readonly entries: EntryMode;
  readonly seconds: number;
  /**
   * Operations begun per second, by the clock and whatever the answers (an open load); above `inflightPerGroup` they
   * wait, and their latency counts from when they were due. 0: each answer begins the next (a closed load).
   */
  readonly opsPerSecond: number;
}

export const ENTRY_MODES = ['single', 'batched'] as const;
export type EntryMode = (typeof ENTRY_MODES)[number];
