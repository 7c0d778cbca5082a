import type { ClusterVersion } from '@remora/base';
import type { AuthImage } from '@remora/protocol';
import type { KnownNode } from './cluster/known-nodes.ts';

/** The identity of a node, which never changes: its cluster and its id. */
export interface NodeAssignment {
  readonly clusterId: string;
  readonly nodeId: number;
  readonly founders?: readonly string[];
}

/** A node's records about itself and other nodes; each change is durable when the call has ended. */
export interface NodeRecords {
  readonly identity: {
    readonly incarnation: string;
    /** Absent until the node knows its cluster. */
    readonly clusterId?: string;
    readonly nodeId?: number;
    /** The names of the founding members in the order of their ids, if this node is one of them. */
    readonly founders?: readonly string[];
  };
  assign(given: NodeAssignment): Promise<void>;
  /** The nodes of the cluster from the last call of `rememberNodes`, in this life or an earlier one. */
  readonly knownNodes: readonly KnownNode[];
  /**
   * Stores what the masters reported about the nodes, for lives that begin while no master can be reached. Throws if it
   * cannot be written; it is still valid for this life.
   */
  rememberNodes(nodes: readonly KnownNode[]): void;
  /** Users and roles from the last call of `rememberAuth`, in this life or an earlier one. */
  readonly knownAuth: AuthImage | undefined;
  /** Stores what the masters reported about users and roles. Throws like `rememberNodes`. */
  rememberAuth(image: AuthImage): void;
  /** The version in force from the last call of `rememberVersion`, in this life or an earlier one. */
  readonly clusterVersion: ClusterVersion | undefined;
  /** Stores the version in force. Throws if it cannot be written. */
  rememberVersion(version: ClusterVersion): void;
  close(): Promise<void>;
}
