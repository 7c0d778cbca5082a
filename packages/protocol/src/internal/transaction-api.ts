/**
 * Transactions over several ranges: what their coordinator and the ranges say to each other (design §11). The protocol,
 * message by message, and its rules T1–T10 are in docs/decisions/0019-transactions-over-ranges.md.
 *
 * A transaction is flattened before it is sent. Its comparisons are a list. Each list of operations that is executed or
 * not as a whole (the `success` or the `failure` of a transaction or of one nested in it) is a *branch* with a number;
 * each operation has a number of its own, in the order in which they are executed. A range gets those comparisons and
 * operations, or pieces of them, whose keys it has; operations over several ranges come in pieces under one number. So
 * ranges know nothing of nesting: the coordinator tells them which branches are executed.
 */
import type { Bytes, ErrorCode, Span } from '@remora/base';
import type { Command, CommandResult } from './command.ts';
import type { Compare, DeleteOp, DeleteResult, PutOp, PutResult, RangeOp, RangeResult } from './kv-types.ts';

/** One operation, or the piece of it that concerns one range. */
export interface PartOp {
  /** Its place among all operations of the transaction. */
  readonly number: number;
  /** Executed if the transaction commits with this branch. */
  readonly branch: number;
  readonly op: RangeOp | PutOp | DeleteOp;
}

/** What one range has to do with a transaction, in the order of the operations' numbers. */
export interface TxnPart {
  readonly compares: readonly Compare[];
  readonly ops: readonly PartOp[];
}

/**
 * Evaluates the comparisons of a part on what is there before the whole transaction (as etcd does), checks its
 * operations, stores them, and takes its intents, which are held until it is resolved. Part 0 is the primary: it makes
 * the record of the transaction, beside `primaryKey`, and is sent and answered before all others (T1).
 *
 * Its request id is `prepareRequestId`, and its deadline that of the client's request, in the time of this range. A part
 * that is sent again under that id is answered as before; a new attempt at the transaction has another `txnId`.
 */
export interface TxnPrepare extends TxnPart {
  readonly type: 'txnPrepare';
  /** Of one attempt of one coordinator, unique in the cluster: 1 to `TXN_ID_MAX` characters. */
  readonly txnId: string;
  readonly part: number;
  /** Of the client's request, the same in each attempt: a range that remembers it says what came of it. May be empty. */
  readonly requestId: string;
  /** A routing key of part 0. */
  readonly primaryKey: Uint8Array;
  /**
   * In the time of this range, at most the deadline: when anybody may settle the part. That of the primary counts: after
   * it the transaction does not commit any more, and whoever asks aborts it.
   */
  readonly expiresMs: number;
}

/** How one of the comparisons of a part came out: `nothing` is that of a span without keys, which other ranges decide. */
export type CompareAnswer = 'holds' | 'fails' | 'nothing';

/** Why an operation cannot be executed: the transaction fails with it if it would commit with that branch. */
export interface OpFailure {
  readonly number: number;
  readonly branch: number;
  readonly code: ErrorCode;
  readonly message: string;
  readonly details?: Readonly<Record<string, unknown>>;
}

/** Whoever holds intents that a part would need. */
export interface TxnHolder {
  readonly txnId: string;
  readonly requestId: string;
  readonly primaryKey: Uint8Array;
}

export type TxnPrepareResult = { readonly type: 'txnPrepare' } & (
  | {
      readonly answer: 'prepared';
      /** The last revision of the range: that of the commit is above it (T4). */
      readonly floor: number;
      /** In the order of the part's comparisons. */
      readonly compares: readonly CompareAnswer[];
      readonly failures: readonly OpFailure[];
      /** Branches that would change something here. Undefined in an answer remembered by an earlier program: any may. */
      readonly changing: readonly number[] | undefined;
    }
  /** Nothing was prepared: other transactions hold intents here, or commands wait for such. At most `TXN_HOLDERS_MAX`. */
  | { readonly answer: 'conflict'; readonly holders: readonly TxnHolder[] }
  /**
   * Nothing was prepared: the client's request was applied here by an earlier attempt. `result` is `txnPart` if that was
   * a transaction over several ranges, and then what this range had of it. (A request that failed here before fails so
   * again.)
   */
  | { readonly answer: 'remembered'; readonly revision: number; readonly result: CommandResult }
  /** The attempt was aborted here before its prepare came (T9). */
  | { readonly answer: 'aborted' }
);

/** What a transaction commits with. */
export interface TxnCommit {
  readonly type: 'commit';
  /**
   * Of a commit that changes something: drawn from the master after all parts were prepared, above all their floors, and
   * used for nothing else (T4). Of any other: the newest that the master had given out by then.
   */
  readonly revision: number;
  /** Those that are executed, ascending. */
  readonly branches: readonly number[];
}

export type TxnResolution = TxnCommit | { readonly type: 'abort' };

/** Decides a transaction at its record, and resolves the primary's part in the same step. */
export interface TxnDecide {
  readonly type: 'txnDecide';
  readonly txnId: string;
  readonly primaryKey: Uint8Array;
  /** Of the client's request: its results are found again by it. */
  readonly requestId: string;
  readonly decision:
    | (TxnCommit & {
        /** Of each further part, in their order, the smallest span of routing keys that holds its keys. */
        readonly others: readonly Span[];
      })
    | { readonly type: 'abort' }
    /** Aborts the transaction if it has expired; otherwise tells how it stands. */
    | { readonly type: 'push' };
}

export type TxnState =
  | { readonly state: 'pending'; readonly remainingMs: number }
  | { readonly state: 'committed'; readonly commit: TxnCommit }
  /** Also of one that committed and whose every part is resolved (T7): there is nothing left to do for it. */
  | { readonly state: 'aborted' };

export interface TxnDecideResult {
  readonly type: 'txnDecide';
  readonly outcome: TxnState;
  /** Of the primary's part, when the transaction is committed and they are remembered. */
  readonly results: readonly PartResult[] | undefined;
}

/** Ends what a range has of a transaction: executes the branches that were committed, lets go of its intents. */
export interface TxnResolve {
  readonly type: 'txnResolve';
  readonly txnId: string;
  readonly part: number;
  /** Of the part, or a piece of it after a split: everything of the transaction that the range has is resolved. */
  readonly span: Span;
  /** Of the client's request: its results are found again by it. */
  readonly requestId: string;
  readonly resolution: TxnResolution;
}

export interface TxnResolveResult {
  readonly type: 'txnResolve';
  /** When it committed; absent also if they are not remembered. */
  readonly results: readonly PartResult[] | undefined;
}

/** Drops a committed record, all of whose parts are known to be resolved (T7). */
export interface TxnForget {
  readonly type: 'txnForget';
  readonly txnId: string;
  readonly primaryKey: Uint8Array;
}

/**
 * The result of an operation, or of the piece of it that one range executed. After a split both halves of the range
 * remember it: number and key say that it is one and the same.
 */
export interface PartResult {
  readonly number: number;
  /** The first key of the operation as the range executed it. */
  readonly key: Bytes;
  readonly result: RangeResult | PutResult | DeleteResult;
}

/** What a range remembers under the client's request id of a transaction over several ranges. */
export interface TxnPartOutcome {
  readonly type: 'txnPart';
  readonly txnId: string;
  readonly commit: TxnCommit;
  readonly results: readonly PartResult[];
}

export type TxnCommand = TxnPrepare | TxnDecide | TxnResolve | TxnForget;
export type TxnCommandResult =
  | TxnPrepareResult
  | TxnDecideResult
  | TxnResolveResult
  | { readonly type: 'txnForget' }
  | TxnPartOutcome;

/** Room for a part's number behind it, in request ids of at most 64 characters. */
export const TXN_ID_MAX = 48;
/** Parts that a transaction may have. */
export const TXN_PARTS_MAX = 4_096;
/** Holders that a conflict names. */
export const TXN_HOLDERS_MAX = 8;

/** The request id under which a part is prepared. */
export function prepareRequestId(txnId: string, part: number): string {
  return `${txnId}/${part}`;
}

export function isTxnCommand(command: Command): command is TxnCommand {
  switch (command.type) {
    case 'txnPrepare':
    case 'txnDecide':
    case 'txnResolve':
    case 'txnForget':
      return true;
    default:
      return false;
  }
}
