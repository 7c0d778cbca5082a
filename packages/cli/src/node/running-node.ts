import type { NodeOptions } from '../node-options.ts';

/** A node that has been started. */
export interface RunningNode {
  /**
   * Settles only when the node cannot go on: rejects with the broken invariant or the failed disk that ended it. The
   * process then ends without a graceful stop.
   */
  readonly failed: Promise<never>;
  /** Hands leaderships over, refuses new work, finishes what is under way, closes everything. */
  stop(): Promise<void>;
}

/** Assembles a node from its roles. */
export type StartNode = (options: NodeOptions) => Promise<RunningNode>;
