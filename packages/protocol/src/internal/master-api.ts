import type { Bytes } from '@remora/base';
import type { Epoch, NodeDescriptor, NodeState, PublicNode, RangeDescriptor } from './descriptor.ts';
import type { HealthCondition } from './health.ts';

/** A node that is not in the initial cluster asks for an id; a known one confirms itself. */
export interface JoinRequest {
  /** 0: please allocate. */
  readonly nodeId: number;
  readonly descriptor: Omit<NodeDescriptor, 'nodeId'>;
}
export interface JoinReply {
  readonly nodeId: number;
  /** By which nodes identify themselves to each other. */
  readonly clusterId: string;
}

/** How a leader sees another replica of its range. */
export interface PeerReport {
  readonly replicaId: number;
  /** How it is being sent to (raft, `ProgressStatus`). */
  readonly state: 'probe' | 'replicate' | 'snapshot';
  /** The highest index known to be durable there; 0: it has not been heard of in this term. */
  readonly match: number;
  readonly lagEntries: number;
  readonly lagBytes: number;
  /** It answers and lags so little that it may become a voter. */
  readonly caughtUp: boolean;
  /** For how long the leader has not heard of it, in ms; 0 while it answers. */
  readonly silentMs: number;
}

/** What only a range's leader knows. Rates are per second, over about the last ten seconds. */
export interface LeaderReport {
  readonly keys: number;
  /** Entries in its log since the last snapshot: what lag is measured by. */
  readonly logEntries: number;
  /** The configuration is joint. */
  readonly joint: boolean;
  /** A membership change is in the log and not applied. */
  readonly changePending: boolean;
  readonly readsPerS: number;
  readonly readBytesPerS: number;
  readonly writesPerS: number;
  readonly writeBytesPerS: number;
  readonly peers: readonly PeerReport[];
  /** What is the matter with its size, for people; empty: nothing. */
  readonly sizeRemark: string;
}

export interface RangeReport {
  readonly rangeId: number;
  readonly replicaId: number;
  /** Of the descriptor, as this replica has it. */
  readonly epoch: Epoch;
  readonly term: number;
  readonly applied: number;
  readonly bytes: number;
  /** It has heard no leader for long: does it still belong to its range? Answered by `removeReplica`, if not. */
  readonly silent: boolean;
  readonly lead: LeaderReport | undefined;
}

/** What a range's leader is to do, by the ids of replicas. Doing it twice is doing it once. */
export type RangeInstruction =
  | { readonly type: 'addLearner'; readonly nodeId: number; readonly replicaId: number }
  /**
   * Learners become voters as voters become learners, in one change, jointly if it takes more than one voter; then those
   * to be removed, learners by then, go.
   */
  | { readonly type: 'changeVoters'; readonly promote: readonly number[]; readonly remove: readonly number[] }
  | { readonly type: 'demote'; readonly replicaId: number }
  | { readonly type: 'leaveJoint' }
  | { readonly type: 'transferLeader'; readonly replicaId: number }
  /** At a routing key, or in the middle. Its leader asks for ids (`masterAskSplit`) and proposes the split. */
  | { readonly type: 'split'; readonly at: Bytes | undefined }
  /**
   * Takes over the keys of a neighbour, which ends by it: it goes to the leader of the range that stays. Refused when the
   * two have more bytes than this, as splits count them; 0: however many.
   */
  | { readonly type: 'merge'; readonly source: RangeDescriptor; readonly bytesMax: number };

/** An instruction on its way to the leader of a range. */
export interface RangeOrder {
  /** Chosen by the master's leader; the result names it. */
  readonly orderId: number;
  readonly rangeId: number;
  /** Of the membership that the instruction is meant for; with another one it is refused. */
  readonly confVersion: number;
  readonly instruction: RangeInstruction;
}

export interface OrderResult {
  readonly orderId: number;
  /** `underWay`: begun, or to be told again. `refused`: not possible, or not by this node; nothing was changed. */
  readonly outcome: 'done' | 'underWay' | 'refused';
  /** Of a refusal or of what has to be waited for, for people. */
  readonly reason: string;
}

/** Of the disk that a node keeps its data on. */
export interface NodeSpace {
  readonly capacityBytes: number;
  readonly availableBytes: number;
}

/** Sent by every node at an interval to the master's leader. */
export interface NodeHeartbeat {
  readonly nodeId: number;
  readonly incarnation: string;
  readonly space: NodeSpace;
  /** Where it stands, by the name of the level: `{ zone: 'a', rack: 'a3' }`. */
  readonly labels: Readonly<Record<string, string>>;
  /** It runs a replica of the masters' group. */
  readonly hasMaster: boolean;
  readonly ranges: readonly RangeReport[];
  /** Of what the answer to the last heartbeat asked for. */
  readonly results: readonly OrderResult[];
  /** What the node finds wrong with itself; at most `CONDITIONS_OF_NODE_MAX`. */
  readonly conditions: readonly HealthCondition[];
}

/** What a node is to do; repeated until its reports show it done. */
export type NodeTask =
  | { readonly type: 'createReplica'; readonly descriptor: RangeDescriptor; readonly replicaId: number }
  /** The replica is no member of its range any more, as of this version of the membership. */
  | {
      readonly type: 'removeReplica';
      readonly rangeId: number;
      readonly replicaId: number;
      readonly confVersion: number;
    }
  | { readonly type: 'order'; readonly order: RangeOrder }
  /** The node is a member of the masters' group. */
  | { readonly type: 'becomeMaster' }
  /** It has left that group, for good. */
  | { readonly type: 'ceaseMaster' };

export interface NodeEntry {
  readonly descriptor: PublicNode;
  readonly state: NodeState;
}

export interface ClusterView {
  /** The id that the cluster shows: nodes identify themselves to each other by another one. */
  readonly clusterId: string;
  readonly nodes: readonly NodeEntry[];
  readonly ranges: readonly RangeDescriptor[];
  /** Last known leader node by range id. */
  readonly leaders: readonly (readonly [rangeId: number, nodeId: number])[];
  readonly masterLeader: number;
}

/** At what sizes a range is looked at, and split: bytes of rows with their keys, older versions included. */
export interface SplitSizes {
  /** From here on its size is measured rather than counted. */
  readonly checkBytes: number;
  /** A range of this size asks to be split. */
  readonly splitBytes: number;
  /** Who would write to a range of this size waits for its split. */
  readonly maxBytes: number;
}

/** How much is asked of a range before its load is a reason to split it. */
export interface SplitLoads {
  /** Reads and writes; 0: however many. */
  readonly requestsPerS: number;
  /** Read and written; 0: however many. */
  readonly bytesPerS: number;
  /** For how long. */
  readonly holdMs: number;
}

/** When leaders have their ranges split: those of the cluster's settings that nodes go by. */
export interface SplitPolicy {
  /** Whether they do at all without being asked to. */
  readonly automatic: boolean;
  readonly sizes: SplitSizes;
  readonly loads: SplitLoads;
}

export interface NodeHeartbeatReply {
  readonly tasks: readonly NodeTask[];
  readonly view: ClusterView;
  /** Of all nodes that were not removed. Only nodes that have proved their own incarnation get these. */
  readonly incarnations: readonly (readonly [nodeId: number, incarnation: string])[];
  readonly splits: SplitPolicy;
  /** What is wrong with the cluster, the worst first; at most `CONDITIONS_TOLD_MAX`, of which what makes nodes unready is kept. */
  readonly conditions: readonly HealthCondition[];
}
