import type { NodeDescriptor, NodeState, RangeDescriptor } from './descriptor.ts';

/** A node that is not in the initial cluster asks for an id; a known one confirms itself. */
export interface JoinRequest {
  /** 0: please allocate. */
  readonly nodeId: number;
  readonly descriptor: Omit<NodeDescriptor, 'nodeId'>;
}
export interface JoinReply {
  readonly nodeId: number;
  readonly clusterId: string;
}

export interface RangeReport {
  readonly rangeId: number;
  readonly replicaId: number;
  readonly leader: boolean;
  readonly term: number;
  readonly applied: number;
  readonly bytes: number;
}

/** Sent by every node at an interval to the master's leader. */
export interface NodeHeartbeat {
  readonly nodeId: number;
  readonly incarnation: string;
  readonly ranges: readonly RangeReport[];
}

/** What a node is to do; repeated until its reports show it done. */
export type NodeTask = {
  readonly type: 'createReplica';
  readonly descriptor: RangeDescriptor;
  readonly replicaId: number;
};

export interface NodeEntry {
  readonly descriptor: NodeDescriptor;
  readonly state: NodeState;
}

export interface ClusterView {
  readonly clusterId: string;
  readonly nodes: readonly NodeEntry[];
  readonly ranges: readonly RangeDescriptor[];
  /** Last known leader node by range id. */
  readonly leaders: readonly (readonly [rangeId: number, nodeId: number])[];
  readonly masterLeader: number;
}

export interface NodeHeartbeatReply {
  readonly tasks: readonly NodeTask[];
  readonly view: ClusterView;
}
