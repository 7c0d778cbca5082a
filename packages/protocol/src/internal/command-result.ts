/** The results of commands. Ranges remember them, so their tags and positions are stored; answers carry them too. */
import {
  added,
  field,
  flatSpread,
  list,
  mapped,
  ms,
  nothing,
  optional,
  recursive,
  spread,
  struct,
  uint,
  union,
  unionWith,
  variant,
  wideInt64,
} from '../schema/kinds.ts';
import { MalformedMessage } from '../schema/malformed.ts';
import type { Infer, Kind } from '../schema/shape.ts';
import { RangeDescriptor } from './descriptor.ts';
import { KV_RESULT_TYPES, KvResult } from './kv-types.ts';
import { LEASE_COMMAND_RESULTS } from './lease-api.ts';
import { LockResultKind } from './lock-kinds.ts';
import { MERGE_RESULTS } from './merge-api.ts';
import {
  CompareAnswer,
  OpFailure,
  PART_RESULTS,
  PartResult,
  TXN_HOLDERS_MAX,
  TxnCommit,
  TxnHolder,
  TxnId,
  TxnState,
} from './transaction-api.ts';

const Prepared = struct('prepared part', {
  floor: field(uint, 'The last revision of the range: that of the commit is above it (T4).'),
  compares: field(list(CompareAnswer), "In the order of the part's comparisons."),
  failures: field(list(OpFailure), 'Operations that cannot be executed.'),
  changing: added(field(optional(list(uint)), 'Branches that would change something here; absent: any may.'), {
    since: '0.1.0',
    absent: undefined,
    always: true,
  }),
});

export type TxnPrepareResult = { readonly type: 'txnPrepare' } & (
  | ({ readonly answer: 'prepared' } & Infer<typeof Prepared>)
  /** Nothing was prepared: other transactions hold intents here, or commands wait for such. */
  | { readonly answer: 'conflict'; readonly holders: readonly TxnHolder[] }
  /**
   * Nothing was prepared: the client's request was applied here by an earlier attempt. `result` is `txnPart` if that
   * was a transaction over several ranges. (A request that failed here before fails so again.)
   */
  | { readonly answer: 'remembered'; readonly revision: number; readonly result: CommandResult }
  /** The attempt was aborted here before its prepare came (T9). */
  | { readonly answer: 'aborted' }
);

/** The answer to a prepare is never remembered, so this does not nest. */
const Remembered: Kind<CommandResult> = mapped(
  recursive<CommandResult>('remembered result', 2, () => CommandResult),
  (result) => {
    if (result.type === 'txnPrepare') throw new MalformedMessage('a prepare is never remembered');
    return result;
  },
  (result) => result,
);

const PrepareAnswer = union('answer to a prepare', 'answer', {
  prepared: variant(0, { body: spread(Prepared, 'What was prepared.') }),
  conflict: variant(1, { holders: field(list(TxnHolder, TXN_HOLDERS_MAX), 'The transactions in the way.') }),
  remembered: variant(2, {
    body: spread(
      struct('remembered', {
        revision: field(uint, 'The revision at which the request was applied.'),
        result: field(Remembered, 'Its result.'),
      }),
      'An earlier attempt.',
    ),
  }),
  aborted: variant(3, { body: spread(nothing as unknown as Kind<object>, 'Nothing.') }),
});

const RESULTS = {
  compact: variant(2, {}),
  leaseGrant: variant(3, {
    id: field(wideInt64, 'The id of the lease.'),
    incarnation: field(uint, 'Tells it from earlier leases of the same id.'),
    ttlMs: field(ms, 'The TTL that it got, in milliseconds.'),
  }),
  leaseRevoke: variant(4, {}),
  lock: variant(6, { result: field(LockResultKind, 'The result.') }),
  noop: variant(7, {}),
  split: variant(8, {
    both: spread(
      struct('halves', {
        left: field(RangeDescriptor, 'The range as it is now.'),
        right: field(RangeDescriptor, 'The child.'),
      }),
      'The two ranges.',
    ),
  }),
  raiseRevision: variant(9, {}),
  txnDecide: variant(11, { outcome: field(TxnState, 'How the transaction stands.'), results: PART_RESULTS }),
  txnResolve: variant(12, { results: PART_RESULTS }),
  txnForget: variant(13, {}),
  /** A range's memory of a transaction over several ranges, under the client's request id. */
  txnPart: variant(14, {
    txnId: field(TxnId, 'The attempt that committed.'),
    commit: field(TxnCommit, 'What it committed with.'),
    results: field(list(PartResult), 'The results of the part.'),
  }),
  ...MERGE_RESULTS,
  ...LEASE_COMMAND_RESULTS,
  leaseChange: variant(24, { ttlMs: field(ms, 'The new TTL, in milliseconds.') }),
  leaseCheckpoint: variant(25, {}),
  recount: variant(26, {}),
};
const PlainCommandResult = union('result of a command', 'type', RESULTS);

export type CommandResult = KvResult | TxnPrepareResult | Infer<typeof PlainCommandResult>;
export type TxnDecideResult = Extract<CommandResult, { readonly type: 'txnDecide' }>;
export type TxnResolveResult = Extract<CommandResult, { readonly type: 'txnResolve' }>;
export type TxnPartOutcome = Extract<CommandResult, { readonly type: 'txnPart' }>;
export type TxnCommandResult = Extract<
  CommandResult,
  { readonly type: 'txnPrepare' | 'txnDecide' | 'txnResolve' | 'txnForget' | 'txnPart' }
>;

/** The variants of results, for `Result` (range-api.ts). */
export const COMMAND_RESULTS = {
  ...RESULTS,
  txnPrepare: variant(10, { answer: flatSpread(PrepareAnswer, 'The answer.') }),
};
export const KV_RESULTS = { tag: 1, of: KvResult, types: KV_RESULT_TYPES } as const;

/** Tags are those of the commands. */
export const CommandResult: Kind<CommandResult> = unionWith(
  'result of a command',
  'type',
  COMMAND_RESULTS,
  KV_RESULTS,
) as Kind<CommandResult>;
