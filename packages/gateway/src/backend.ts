import type { PlainNeed, Principal } from '@remora/auth';
import type { Bytes, ServiceError } from '@remora/base';
import type { LockNews } from '@remora/lock';
import type { ClusterView, Command, CommandResult, KvEvent, Query, QueryResult } from '@remora/protocol';

/** A result, with the header fields that etcd clients expect. */
export interface BackendReply<Result> {
  readonly result: Result;
  readonly revision: number;
  readonly raftTerm: number;
  /** Only for an acquire that had to wait: its place in the queue when it joined, 1 for the next. */
  readonly queuedAt?: number | undefined;
}

/** Called once, with either an error or a reply. */
export type BackendDone<Result> = (error: ServiceError | undefined, reply: BackendReply<Result> | undefined) => void;

/** Who asks: part of the options of every call, so that no door forgets it. Undefined: the caller has not logged in. */
export interface Asked {
  readonly principal: Principal | undefined;
  /** The caller's W3C trace context (`traceparent`), as it sent it. Absent: it sent none. */
  readonly trace?: string | undefined;
}

/** What a request to the ranges has beside its command or query. */
export interface RequestTerms {
  /** The request ends with an error after this time. At most 60 s for commands. */
  readonly timeoutMs: number;
  /**
   * Set by clients that retry by themselves (the SDK), so that a retry through another gateway is applied once. The
   * backend chooses one otherwise.
   */
  readonly requestId?: string;
  /**
   * The range time after which the range refuses the command. A client that retries by itself computes it from
   * `Backend.rangeTimeMs` when it chooses the request id, and sends the same deadline with each attempt.
   */
  readonly deadlineMs?: number | undefined;
  /** Only for an acquire that may wait: how long, in ms, from the call on; 0 waits as long as the session lives. */
  readonly waitMs?: number | undefined;
  /**
   * Only for queries: a revision that this client has seen, so the answer must not be older. A replica that has this
   * revision, or the leader, answers a `serializable` read. Clients cannot set it.
   */
  readonly notBefore?: number;
  /**
   * Only for queries: the answer carries a revision that is at least that of every change acknowledged before the
   * query. That always holds for reads of keys that are not `serializable`. Clients cannot set it.
   */
  readonly current?: boolean;
  /** Only for queries: a part of a heartbeat, which is admitted like one (`RequestClass`). Clients cannot set it. */
  readonly ofHeartbeat?: boolean;
  /** Only for commands: it gives up a wait, and is admitted like a cancel. Clients cannot set it. */
  readonly givesUp?: boolean;
  /**
   * Only for commands: the client has sent this request id before. If it may not send the command any more, it still
   * learns the outcome.
   */
  readonly again?: boolean | undefined;
  /**
   * Only for commands: a person or a program has chosen the request id, so others may guess it. It counts among the
   * commands of its user only. The ids of the SDK are random, and so are secrets of its clients.
   */
  readonly isChosenId?: boolean;
}

export interface RequestOptions extends RequestTerms, Asked {}

export interface WatchOptions {
  readonly key: Bytes;
  readonly end?: Bytes;
  /** 0: the watch starts with the next change. */
  readonly startRevision: number;
  readonly noPut: boolean;
  readonly noDelete: boolean;
  readonly prevKv: boolean;
}

export interface WatchListener {
  onCreated(revision: number): void;
  /** Events in revision order, perhaps none. No later event has a revision at or below `revision`. */
  onEvents(events: readonly KvEvent[], revision: number): void;
  /**
   * Answers `WatchControl.progress`: no later event has a revision at or below `revision`, and `revision` is at least
   * that of every write, to any key, that was acknowledged before the call.
   */
  onProgress(revision: number): void;
  /** The last call. `compactRevision` is above 0 if the start revision was compacted. */
  onEnd(error: ServiceError, compactRevision: number): void;
}

export interface WatchControl {
  cancel(): void;
  /**
   * Asks for one `onProgress`, which follows once the watch is created, resumed and caught up. A call has no effect
   * while an answer is due; that answer may not cover what was acknowledged since the first call.
   */
  progress(): void;
  /** Back-pressure: a paused watch delivers nothing, and catches up from history after `resume`. */
  pause(): void;
  resume(): void;
}

export interface LockWatchOptions {
  readonly namespace: string;
  /** The name of one lock (`single`), or the prefix of the names of all watched locks. */
  readonly name: Bytes;
  readonly single: boolean;
}

/** Takes the states of the watched locks, then events. After an interruption the states come again. */
export type LockWatchListener = (events: readonly LockNews[]) => void;

/** Called at most once: the client may not watch these locks any more. Nothing is delivered afterwards. */
export type LockWatchEnd = (error: ServiceError) => void;

/**
 * The cluster, as the services of a gateway see it. A backend routes requests by their keys, follows leaders, and
 * retries under one request id until the deadline. It answers with typed errors: UNKNOWN_OUTCOME if a command may have
 * been applied; any other error except RESULT_LOST means that nothing was changed.
 */
export interface Backend {
  /** Returns a function that ends the interest in the answer: `done` is not called, but the command may be applied. */
  command(command: Command, options: RequestOptions, done: BackendDone<CommandResult>): () => void;
  /** Returns a function that cancels the query. */
  query(query: Query, options: RequestOptions, done: BackendDone<QueryResult>): () => void;
  watch(options: WatchOptions & Asked, listener: WatchListener): WatchControl;
  /**
   * Runs until it is cancelled, or ended. A paused watch delivers nothing, and starts again with the states after
   * `resume`.
   */
  watchLocks(
    options: LockWatchOptions & Asked,
    listener: LockWatchListener,
    onEnd: LockWatchEnd,
  ): Omit<WatchControl, 'progress'>;
  /**
   * For what is no command and no query. `action` names it in the audit log.
   *
   * @throws ServiceError `UNAUTHENTICATED` or `PERMISSION_DENIED` for the first need that is not granted
   */
  check(principal: Principal | undefined, needs: readonly PlainNeed[], action?: string): void;
  /** Cluster membership and routes, as the master sent them last. */
  view(): ClusterView;
  readonly nodeId: number;
  /** The latest known time of a range, in ms; undefined before the first answer of a range. */
  rangeTimeMs(): number | undefined;
}
