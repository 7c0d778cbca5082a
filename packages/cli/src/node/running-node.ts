import type { Logger } from '@remora/base';
import type { NodeOptions } from '../node-options.ts';

/** A node that has been started. */
export interface RunningNode {
  /**
   * Settles only when the node must stop: rejects with the broken invariant or the failed disk that ended it. The
   * process then ends without a graceful stop.
   */
  readonly failed: Promise<never>;
  /**
   * Uses certificates, keys and revocation lists as their files are now, opens the audit log again, and takes the
   * addresses of other nodes from `options`.
   */
  reload(options: NodeOptions): Promise<void>;
  /** Drains, transfers leaderships, refuses new work, finishes work in progress, closes everything. */
  stop(): Promise<void>;
}

/** Assembles a node from its roles. If the signal aborts, a start that waits for others (a joining node) ends. */
export type StartNode = (options: NodeOptions, signal: AbortSignal, logger?: Logger) => Promise<RunningNode>;
