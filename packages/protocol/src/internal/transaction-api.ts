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
import { ERROR_TABLE, type ErrorCode } from '@remora/base';
import {
  bytes,
  details,
  field,
  flat,
  list,
  maybe,
  ms,
  names,
  optional,
  struct,
  text,
  textOf,
  uint,
  uintBetween,
  union,
  variant,
  words,
} from '../schema/kinds.ts';
import type { Infer } from '../schema/shape.ts';
import { Compare, PlainOp, PlainResult } from './kv-types.ts';
import { SpanKind } from './lease-api.ts';

/** Room for a part's number behind it, in request ids of at most 64 characters. */
export const TXN_ID_MAX = 48;
/** Parts that a transaction may have. */
export const TXN_PARTS_MAX = 4_096;
/** Holders that a conflict names. */
export const TXN_HOLDERS_MAX = 8;

export const TxnId = textOf({ min: 1, max: TXN_ID_MAX });
const Part = uintBetween(0, TXN_PARTS_MAX - 1);

/** One operation, or the piece of it that concerns one range. */
export const PartOp = struct('operation of a part', {
  number: field(uint, 'Its place among all operations of the transaction.'),
  branch: field(uint, 'Executed if the transaction commits with this branch.'),
  op: field(PlainOp, 'The operation.'),
});
export interface PartOp extends Infer<typeof PartOp> {}

/** The comparisons and operations of a transaction in one range, in the order of the operations' numbers. */
export const TXN_PART = {
  compares: field(list(Compare), 'The comparisons, or pieces of them, whose keys the range has.'),
  ops: field(list(PartOp), 'The operations, or pieces of them, whose keys the range has.'),
};
const TxnPartKind = struct('part', TXN_PART);
export type TxnPart = Infer<typeof TxnPartKind>;

export const CompareAnswer = words('answer of a comparison', ['holds', 'fails', 'nothing']);
/**
 * The result of one of the comparisons of a part: `nothing` is that of a span without keys, which other ranges decide.
 */
export type CompareAnswer = Infer<typeof CompareAnswer>;

/** Why an operation cannot be executed: the transaction fails with it if it would commit with that branch. */
export const OpFailure = struct('failure of an operation', {
  number: field(uint, 'The operation.'),
  branch: field(uint, 'The branch that it is in.'),
  code: field(names('error code', Object.keys(ERROR_TABLE) as ErrorCode[]), 'The code of the error.'),
  message: field(text, 'The text of the error.'),
  details: maybe(details, 'The details of the error.'),
});
export interface OpFailure extends Infer<typeof OpFailure> {}

/** A transaction that holds intents which a part would need. */
export const TxnHolder = struct('holder of an intent', {
  txnId: field(TxnId, 'The attempt at the transaction.'),
  requestId: field(text, "The id of its client's request."),
  primaryKey: field(bytes, 'A routing key of its part 0.'),
});
export interface TxnHolder extends Infer<typeof TxnHolder> {}

const COMMIT = {
  revision: field(
    uint,
    'Of a commit that changes something: drawn from the masters after all parts were prepared, above all their floors, and used for nothing else (T4). Of any other: the newest that the masters had allocated by then.',
  ),
  branches: field(list(uint), 'The branches that are executed, ascending.'),
};
const ABORT = variant(1, {});

/** The parameters of a commit. */
export const TxnCommit = union('commit', 'type', { commit: variant(0, COMMIT) });
export type TxnCommit = Infer<typeof TxnCommit>;

export const TxnResolution = union('resolution', 'type', { commit: variant(0, COMMIT), abort: ABORT });
export type TxnResolution = Infer<typeof TxnResolution>;

/** The further parts of a transaction: of each the smallest span of routing keys that holds its keys. */
export const TxnSpans = list(SpanKind, TXN_PARTS_MAX - 1);

const TxnDecision = union('decision', 'type', {
  commit: variant(0, { ...COMMIT, others: field(TxnSpans, 'The further parts, in their order.') }),
  abort: ABORT,
  /** Aborts the transaction if it has expired; otherwise reports its state. */
  push: variant(2, {}),
});

export const TxnState = union('state of a transaction', 'state', {
  pending: variant(0, { remainingMs: field(ms, 'Milliseconds until it expires.') }),
  committed: variant(1, { commit: field(TxnCommit, 'What it committed with.') }),
  /** Also of one that committed and whose every part is resolved (T7): nothing is left to do for it. */
  aborted: variant(2, {}),
});
export type TxnState = Infer<typeof TxnState>;

const TXN_ID = field(TxnId, 'One attempt of one coordinator, unique in the cluster.');
const REQUEST_ID = field(text, "The id of the client's request; may be empty. Its results are found again by it.");
const PRIMARY_KEY = field(bytes, 'A routing key of part 0, where the record of the transaction is.');
const PART = field(Part, 'The number of the part; 0: the primary.');

export const TXN_COMMANDS = {
  /**
   * Evaluates the comparisons of a part on what is there before the whole transaction (as etcd does), checks its
   * operations, stores them, and takes its intents, which are held until it is resolved. Part 0 is the primary: it
   * makes the record of the transaction, beside `primaryKey`, and is sent and answered before all others (T1).
   *
   * Its request id is `prepareRequestId`, and its deadline that of the client's request, in the time of this range. A
   * part that is sent again under that id is answered as before; a new attempt has another `txnId`.
   */
  txnPrepare: variant(10, {
    txnId: TXN_ID,
    part: PART,
    requestId: REQUEST_ID,
    primaryKey: PRIMARY_KEY,
    expiresMs: field(
      ms,
      'In the time of this range, at most the deadline: from then on any gateway may settle the part. The one of the primary counts: after it the transaction does not commit any more.',
    ),
    ...TXN_PART,
  }),
  /** Decides a transaction at its record, and resolves the primary's part in the same step. */
  txnDecide: variant(11, {
    txnId: TXN_ID,
    primaryKey: PRIMARY_KEY,
    requestId: REQUEST_ID,
    decision: field(TxnDecision, 'What is decided.'),
  }),
  /** Ends what a range has of a transaction: executes the branches that were committed, drops its intents. */
  txnResolve: variant(12, {
    txnId: TXN_ID,
    part: PART,
    span: flat(SpanKind, 'Of the part, or a piece of it after a split: all that the range has is resolved.'),
    requestId: REQUEST_ID,
    resolution: field(TxnResolution, 'How it was decided.'),
  }),
  /** Drops a committed record, all of whose parts are known to be resolved (T7). */
  txnForget: variant(13, { txnId: TXN_ID, primaryKey: PRIMARY_KEY }),
};
export const TxnCommand = union('transaction command', 'type', TXN_COMMANDS);
export type TxnCommand = Infer<typeof TxnCommand>;
export type TxnPrepare = Extract<TxnCommand, { readonly type: 'txnPrepare' }>;
export type TxnDecide = Extract<TxnCommand, { readonly type: 'txnDecide' }>;
export type TxnResolve = Extract<TxnCommand, { readonly type: 'txnResolve' }>;
export type TxnForget = Extract<TxnCommand, { readonly type: 'txnForget' }>;

/**
 * The result of an operation, or of the piece of it that one range executed. After a split both halves of the range
 * remember it: number and key say that it is one and the same.
 */
export const PartResult = struct('result of a part', {
  number: field(uint, 'The operation.'),
  key: field(bytes, 'The first key of the operation as the range executed it.'),
  result: field(PlainResult, 'Its result.'),
});
export interface PartResult extends Infer<typeof PartResult> {}

export const PART_RESULTS = field(
  optional(list(PartResult)),
  'The results of the part; absent if the transaction did not commit or they are not remembered.',
);

/** The request id under which a part is prepared. */
export function prepareRequestId(txnId: string, part: number): string {
  return `${txnId}/${part}`;
}

export function isTxnCommand(command: { readonly type: string }): command is TxnCommand {
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
