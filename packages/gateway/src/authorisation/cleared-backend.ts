import type { ClusterView, Command, CommandResult, Query, QueryResult } from '@remora/protocol';
import type {
  BackendDone,
  LockWatchListener,
  LockWatchOptions,
  RequestTerms,
  WatchControl,
  WatchListener,
  WatchOptions,
} from '../backend.ts';
import type { Recalled } from '../routing/calls/recall.ts';
import type { Clearance } from './clearance.ts';

/** The ranges, for requests that are allowed already. */
export interface ClearedBackend {
  /** For work of the cluster itself. */
  query(query: Query, options: RequestTerms, done: BackendDone<QueryResult>): () => void;
  commandFor(
    clearance: Clearance,
    command: Command,
    options: RequestTerms,
    done: BackendDone<CommandResult>,
  ): () => void;
  queryFor(clearance: Clearance, query: Query, options: RequestTerms, done: BackendDone<QueryResult>): () => void;
  /** Answers with the outcome of a command that was sent before. */
  recall(recalled: Recalled, done: BackendDone<CommandResult>): () => void;
  watch(options: WatchOptions, listener: WatchListener): WatchControl;
  watchLocks(options: LockWatchOptions, listener: LockWatchListener): Omit<WatchControl, 'progress'>;
  view(): ClusterView;
  readonly nodeId: number;
  rangeTimeMs(): number | undefined;
}
