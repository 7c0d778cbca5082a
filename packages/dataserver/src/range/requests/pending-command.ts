import type { ServiceError } from '@remora/base';
import type { BatchedCommand } from '@remora/protocol';
import type { Outcome } from '../../state/outcomes/outcome-codec.ts';

/** A command on its way through the log of a range. */
export interface PendingCommand {
  readonly item: BatchedCommand;
  /** The approximate number of its bytes in the log. */
  readonly bytes: number;
  /**
   * Called exactly once: with the outcome when the entry that carries the command is applied, or with the error that
   * kept the outcome from being known (proposals.ts P2).
   */
  complete(error: ServiceError | undefined, outcome: Outcome | undefined): void;
}
