/**
 * What the fuzzer asks of both servers. Revisions and leases are named, not numbered: each server has its own numbers
 * for them. Keys and values are latin1 text, one character for each byte.
 */

/**
 * `ago`: so many known revisions back from the newest, at most back to the oldest. `ahead`: the newest plus so much.
 */
export type Revision = { readonly raw: bigint } | { readonly ago: number } | { readonly ahead: number };

/** `slot`: the lease of that number, whatever its id is. */
export type Lease = { readonly raw: bigint } | { readonly slot: number };

export interface Span {
  readonly key: string;
  /** Absent: one key. "\0": from the key on. */
  readonly end?: string;
}

export interface RangeStep extends Span {
  readonly do: 'range';
  readonly limit?: bigint;
  readonly revision?: Revision;
  readonly sortOrder?: number;
  readonly sortTarget?: number;
  readonly serializable?: boolean;
  readonly keysOnly?: boolean;
  readonly countOnly?: boolean;
  readonly minMod?: Revision;
  readonly maxMod?: Revision;
  readonly minCreate?: Revision;
  readonly maxCreate?: Revision;
}

export interface PutStep {
  readonly do: 'put';
  readonly key: string;
  readonly value: string;
  readonly lease?: Lease;
  readonly prevKv?: boolean;
  readonly ignoreValue?: boolean;
  readonly ignoreLease?: boolean;
}

export interface DeleteStep extends Span {
  readonly do: 'delete';
  readonly prevKv?: boolean;
}

export interface Comparison extends Span {
  readonly result: number;
  readonly target: number;
  readonly with?:
    | { readonly version: bigint }
    | { readonly create: Revision }
    | { readonly mod: Revision }
    | { readonly value: string }
    | { readonly lease: Lease };
}

/** `nothing`: an operation without a request. */
export type Operation = RangeStep | PutStep | DeleteStep | TxnStep | { readonly do: 'nothing' };

export interface TxnStep {
  readonly do: 'txn';
  readonly compare: readonly Comparison[];
  readonly success: readonly Operation[];
  readonly failure: readonly Operation[];
}

export interface CompactStep {
  readonly do: 'compact';
  readonly revision: Revision;
  readonly physical: boolean;
}

export interface GrantStep {
  readonly do: 'grant';
  readonly lease: Lease;
  readonly ttl: bigint;
}

export interface LeaseStep {
  readonly do: 'revoke' | 'keepAlive';
  readonly lease: Lease;
}

export interface TimeToLiveStep {
  readonly do: 'timeToLive';
  readonly lease: Lease;
  readonly keys: boolean;
}

interface LeasesStep {
  readonly do: 'leases';
}

export interface WatchStep extends Span {
  readonly do: 'watch';
  /** Its place among all watches of the run, from 0. */
  readonly watch: number;
  /** Watches of one number share a stream. */
  readonly stream: number;
  readonly start?: Revision;
  readonly noPut?: boolean;
  readonly noDelete?: boolean;
  readonly prevKv?: boolean;
  readonly progressNotify?: boolean;
  readonly fragment?: boolean;
  /** Chosen by the client; 0 leaves it to the server. */
  readonly id?: bigint;
}

export interface CancelStep {
  readonly do: 'cancel';
  readonly watch: number;
}

export interface ProgressStep {
  readonly do: 'progress';
  readonly stream: number;
}

/** Lets all watches catch up, and compares what they have told. */
interface SettleStep {
  readonly do: 'settle';
}

export type UnaryStep =
  | RangeStep
  | PutStep
  | DeleteStep
  | TxnStep
  | CompactStep
  | GrantStep
  | LeaseStep
  | TimeToLiveStep
  | LeasesStep;

type StreamStep = WatchStep | CancelStep | ProgressStep;
export type Step = UnaryStep | StreamStep | SettleStep;

/** Whether the transaction, or one nested in it, has an operation that writes, in either branch. */
export function writes({ success, failure }: TxnStep): boolean {
  return [...success, ...failure].some(
    (op) => op.do === 'put' || op.do === 'delete' || (op.do === 'txn' && writes(op)),
  );
}

/** All operations of a transaction, those nested in it included. */
export function* operationsOf({ success, failure }: TxnStep): Generator<Operation> {
  for (const op of [...success, ...failure]) {
    yield op;
    if (op.do === 'txn') yield* operationsOf(op);
  }
}
