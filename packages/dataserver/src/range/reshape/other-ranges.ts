import type { ServiceError } from '@remora/base';
import type { Command, CommandResult, Query, QueryResult } from '@remora/protocol';

/**
 * How the leader of a range uses other ranges: commands find the range that has their key, are retried under one
 * request id until the time is over, and are applied once.
 */
export interface OtherRanges {
  /**
   * UNKNOWN_OUTCOME: the command may have been applied, or may still be. `done` is called once, in bounded time, unless
   * the returned function is called first: then the result is no longer wanted.
   */
  command(
    command: Command,
    options: { readonly timeoutMs: number },
    done: (error: ServiceError | undefined, reply: { readonly result: CommandResult } | undefined) => void,
  ): () => void;

  /** Reads a state that contains everything acknowledged there when the query was sent. Otherwise like `command`. */
  query(
    query: Query,
    options: { readonly timeoutMs: number },
    done: (error: ServiceError | undefined, reply: { readonly result: QueryResult } | undefined) => void,
  ): () => void;
}
