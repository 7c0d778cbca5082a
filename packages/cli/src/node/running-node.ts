import type { NodeOptions } from '../node-options.ts';

/** A node that has been started. */
export interface RunningNode {
  /**
   * Settles only when the node must stop: rejects with the broken invariant or the failed disk that ended it. The
   * process then ends without a graceful stop.
   */
  readonly failed: Promise<never>;
  /** Uses certificates, keys and revocation lists as their files are now, and opens the audit log again. */
  reload(): Promise<void>;
  /** Transfers leaderships, refuses new work, finishes work in progress, closes everything. */
  stop(): Promise<void>;
}

/** Assembles a node from its roles. If the signal aborts, a start that waits for others (a joining node) ends. */
export type StartNode = (options: NodeOptions, signal: AbortSignal) => Promise<RunningNode>;
