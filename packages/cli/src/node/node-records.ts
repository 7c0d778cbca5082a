import type { KnownNode } from './cluster/known-nodes.ts';

/** What a node keeps about itself and the others besides data; each change is durable when the call has ended. */
export interface NodeRecords {
  readonly identity: {
    readonly incarnation: string;
    /** Absent until the node knows its cluster. */
    readonly clusterId?: string;
    readonly nodeId?: number;
  };
  assign(given: { readonly clusterId: string; readonly nodeId: number }): Promise<void>;
  /** The nodes of the cluster as `rememberNodes` was told last, in this life or an earlier one. */
  readonly knownNodes: readonly KnownNode[];
  /**
   * Keeps what the masters said of the nodes, for lives that begin while no master can say it. Throws when it cannot be
   * written; it counts for this life then.
   */
  rememberNodes(nodes: readonly KnownNode[]): void;
  close(): Promise<void>;
}
