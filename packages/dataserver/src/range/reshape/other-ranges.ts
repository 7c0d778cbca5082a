import type { ServiceError } from '@remora/base';
import type { Command, CommandResult, Query, QueryResult } from '@remora/protocol';

/**
 * How the leader of a range has other ranges do something: commands find the range that has their key, are sent again
 * under one request id until the time is over, and are applied once.
 */
export interface OtherRanges {
  /**
   * UNKNOWN_OUTCOME: it may have been applied, or may be yet. `done` is called once, in bounded time, unless what this
   * gives is called before: then nobody cares any more.
   */
  command(
    command: Command,
    options: { readonly timeoutMs: number },
    done: (error: ServiceError | undefined, reply: { readonly result: CommandResult } | undefined) => void,
  ): () => void;

  /** Reads what was acknowledged there when it is asked, or later. Otherwise as for commands. */
  query(
    query: Query,
    options: { readonly timeoutMs: number },
    done: (error: ServiceError | undefined, reply: { readonly result: QueryResult } | undefined) => void,
  ): () => void;
}
