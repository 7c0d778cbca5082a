import type { RemoraClient } from '../client.ts';

/** How one attempt went. With Remora there is one member, the cluster, and its vote decides. */
export interface ExecutionStats {
  readonly membershipSize: number;
  readonly quorumSize: number;
  readonly votesFor: Set<RemoraClient>;
  readonly votesAgainst: Map<RemoraClient, Error>;
}

export interface ExecutionResult {
  readonly attempts: readonly Promise<ExecutionStats>[];
}
