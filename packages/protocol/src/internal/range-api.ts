import type { Bytes, Span } from '@remora/base';
import type { Command, CommandResult, Query, QueryResult } from './command.ts';
import type { Epoch, RangeDescriptor } from './descriptor.ts';
import type { KvEvent } from './kv-types.ts';

/** Where a request goes and what identifies it. */
export interface RangeRequest {
  readonly rangeId: number;
  readonly epoch: Epoch;
  /** A command is applied once per request id, however often it is sent (design §7). Empty for queries. At most 64 characters. */
  readonly requestId: string;
  /**
   * Range time in ms after which apply refuses the command; fixed by the gateway when the request begins and the
   * same in each retry. 0 for queries.
   */
  readonly deadlineMs: number;
  /**
   * `notBefore`: a revision that was given out before the gateway sent the query, or 0. The answer shows every change up to
   * it, and carries a revision that is at least as high. Only gateways set it, never their clients.
   */
  readonly body:
    | { readonly kind: 'command'; readonly command: Command }
    | { readonly kind: 'query'; readonly query: Query; readonly notBefore: number };
}

/** Every reply of a range. An acquire that joined a queue is answered `queued` at once; `lockAwait` waits for the rest. */
export interface RangeReply {
  readonly revision: number;
  readonly raftTerm: number;
  /**
   * The range's time when it answered: what gateways reckon deadlines from (`deadlineMs`). 0 from a replica that does not
   * lead, as may answer what need not be current: it knows of no time.
   */
  readonly rangeTimeMs: number;
  readonly result: CommandResult | QueryResult;
}

export interface WatchCreate {
  readonly kind: 'create';
  readonly watchId: number;
  readonly rangeId: number;
  readonly epoch: Epoch;
  readonly span: Span;
  /** First revision to report; 0: from now on (the reply `created` says which). */
  readonly startRevision: number;
  readonly noPut: boolean;
  readonly noDelete: boolean;
  readonly prevKv: boolean;
}
export type WatchRequest =
  | WatchCreate
  | { readonly kind: 'cancel'; readonly watchId: number }
  /** Asks every watch of the stream how far it is. `question` grows with each request of a stream. */
  | { readonly kind: 'progress'; readonly question: number };

export type WatchMessage =
  | { readonly kind: 'created'; readonly watchId: number; readonly revision: number }
  /** All events of the watch with revisions in (previous message's `revision`, `revision`]; may be empty. */
  | {
      readonly kind: 'events';
      readonly watchId: number;
      readonly revision: number;
      readonly events: readonly KvEvent[];
    }
  /**
   * Answers a question and all before it: everything up to `revision` was sent, and `revision` is at least that of every
   * write that was acknowledged, by any range, before the question arrived.
   */
  | {
      readonly kind: 'progress';
      readonly watchId: number;
      readonly revision: number;
      readonly question: number;
    }
  /** `COMPACTED` with the compact revision, NOT_LEADER, STALE_EPOCH, … The watch is over; resume after the last revision. */
  | {
      readonly kind: 'ended';
      readonly watchId: number;
      readonly code: string;
      readonly message: string;
      readonly compactRevision: number;
      /** Of STALE_EPOCH: ranges as they are now, as with an answer that refuses a request (stale-epoch.ts). */
      readonly ranges?: readonly RangeDescriptor[];
    };

/** To be told what happens to locks of a range, for as long as its leader is the same and it has all of them. */
export interface LockWatchRequest {
  readonly rangeId: number;
  readonly epoch: Epoch;
  readonly namespace: string;
  /** The name of one lock (`single`), or what the names of all begin with. */
  readonly name: Bytes;
  readonly single: boolean;
  /** Where they lie, in routing keys: what the range has of them. */
  readonly span: Span;
}

/** Asked before the first request to a range: who leads it, and its time. */
export interface RangeInfoRequest {
  readonly rangeId: number;
}

/** Asked while nobody is known to lead the range: answered when the node that is asked does, and at latest after the time. */
export interface AwaitLeaderRequest extends RangeInfoRequest {
  readonly waitMs: number;
}

export interface RangeInfo {
  readonly rangeId: number;
  /** 0: unknown at the moment. */
  readonly leaderNode: number;
  readonly rangeTimeMs: number;
  readonly revision: number;
  readonly term: number;
}

/** Longest time a command may have before its deadline, as reckoned by the range that applies it. */
export const COMMAND_DEADLINE_MAX_MS = 120_000;

export type RoutingKey = Bytes;

/** A replica that is no member of its range any more, as of this version of the membership. */
export interface RemovedReplica {
  readonly rangeId: number;
  readonly replicaId: number;
  readonly confVersion: number;
}
