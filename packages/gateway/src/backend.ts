import type { Bytes, ServiceError } from '@remora/base';
import type { LockNews } from '@remora/lock';
import type { ClusterView, Command, CommandResult, KvEvent, Query, QueryResult } from '@remora/protocol';

/** Result and the header fields that etcd clients expect. */
export interface BackendReply<Result> {
  readonly result: Result;
  readonly revision: number;
  readonly raftTerm: number;
  /** Of an acquire that had to wait: the place in the queue at which it joined, 1 for the next. */
  readonly queuedAt?: number | undefined;
}

export type BackendDone<Result> = (error: ServiceError | undefined, reply: BackendReply<Result> | undefined) => void;

export interface RequestOptions {
  /** From now; the request ends with an error by then. At most 60 s for commands. */
  readonly timeoutMs: number;
  /**
   * Given by clients that retry by themselves (the SDK), so that a retry through another gateway is applied once.
   * Made up by the backend otherwise.
   */
  readonly requestId?: string;
  /**
   * Range time after which the command is refused, fixed by a client that retries by itself when it made the request
   * id, from `Backend.rangeTimeMs`; the same in each of its attempts.
   */
  readonly deadlineMs?: number | undefined;
  /** For a blocking lock acquire: how long to wait in the queue, in ms; 0 waits as long as the session lives. */
  readonly waitMs?: number | undefined;
  /**
   * Of a query: a revision that this client has seen already, so that no later answer may be before it. A read that says
   * `serializable` is answered by a replica that has this revision, or by the leader. Clients cannot set it.
   */
  readonly notBefore?: number;
  /**
   * Of a query: its answer carries a revision that is at least that of every change acknowledged before the query. Reads of
   * keys that are not `serializable` always do. Clients cannot set it.
   */
  readonly current?: boolean;
  /** Of a query: it is a part of a heartbeat, and is let in like one (`RequestClass`). Clients cannot say so. */
  readonly ofHeartbeat?: boolean;
  /** Of a command: it gives up a wait, and is let in like a cancel. Clients cannot say so. */
  readonly givesUp?: boolean;
}

export interface WatchOptions {
  readonly key: Bytes;
  readonly end?: Bytes;
  /** 0: from now on. */
  readonly startRevision: number;
  readonly noPut: boolean;
  readonly noDelete: boolean;
  readonly prevKv: boolean;
}

export interface WatchListener {
  onCreated(revision: number): void;
  /** Events in revision order; `revision`: nothing at or below it is still to come. May be empty. */
  onEvents(events: readonly KvEvent[], revision: number): void;
  /**
   * Answers `WatchControl.progress`: nothing at or below `revision` is still to come, and `revision` is at least that of
   * every write, to whatever keys, that was acknowledged before the call.
   */
  onProgress(revision: number): void;
  /** Final. `compactRevision` is above 0 when the start was compacted. */
  onEnd(error: ServiceError, compactRevision: number): void;
}

export interface WatchControl {
  cancel(): void;
  /**
   * Asks for one `onProgress`, which comes when the watch is created, resumed and caught up. A call made while an answer is
   * due has no effect: that answer may not cover what was acknowledged since the first call.
   */
  progress(): void;
  /** Back-pressure: while paused, nothing is delivered; the watch is caught up from history afterwards. */
  pause(): void;
  resume(): void;
}

export interface LockWatchOptions {
  readonly namespace: string;
  /** The name of one lock (`single`), or what the names of all begin with. */
  readonly name: Bytes;
  readonly single: boolean;
}

/** Told first how locks are, and then what happens to them; again from the beginning where that could not be gone on with. */
export type LockWatchListener = (news: readonly LockNews[]) => void;

/**
 * What gateway services are written against: it routes by key, follows leaders, retries under one request id until
 * the deadline, and answers with typed errors: UNKNOWN_OUTCOME when a command may have been applied, otherwise
 * nothing was changed.
 */
export interface Backend {
  /** Returns a function that gives up waiting (the command itself may still be applied). */
  command(command: Command, options: RequestOptions, done: BackendDone<CommandResult>): () => void;
  query(query: Query, options: RequestOptions, done: BackendDone<QueryResult>): () => void;
  watch(options: WatchOptions, listener: WatchListener): WatchControl;
  /** Goes on until it is cancelled. While it is paused nothing is delivered; it begins anew afterwards. */
  watchLocks(options: LockWatchOptions, listener: LockWatchListener): Omit<WatchControl, 'progress'>;
  /** Cluster membership and routes, as last heard from the master. */
  view(): ClusterView;
  readonly nodeId: number;
  /** The time of the ranges as far as known, in ms; undefined before the first answer of a range. */
  rangeTimeMs(): number | undefined;
}
