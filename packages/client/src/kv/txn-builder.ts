import type { BytesLike, KeySelector } from './keys.ts';
import type { KeyTxnCompare, TxnCompare, TxnOperation, TxnRequest, WriteOptions } from './kv-options.ts';
import type { TxnAnswer, TxnDeleteAnswer, TxnGetAnswer, TxnPutAnswer, TxnResult } from './txn.ts';

type Answers = readonly TxnAnswer[];
type PutPart = Extract<TxnOperation, { readonly put: unknown }>;
type GetPart = Extract<TxnOperation, { readonly get: unknown }>;

/** What a comparison of that field compares with. */
export type ComparedWith<Target extends KeyTxnCompare['target']> = Target extends 'value'
  ? BytesLike
  : Target extends 'lease'
    ? bigint
    : number;

/** How a transaction ended: `results` has one answer for each operation of the part that was applied, in its order. */
export type TxnOutcome<Success extends Answers, Failure extends Answers> =
  | { readonly succeeded: true; readonly results: Success; readonly revision: number }
  | { readonly succeeded: false; readonly results: Failure; readonly revision: number };

type Commit = (request: TxnRequest, options: WriteOptions) => Promise<TxnResult>;

interface Draft {
  readonly compare: readonly TxnCompare[];
  readonly success: readonly TxnOperation[];
  readonly failure: readonly TxnOperation[];
}

/**
 * A transaction that is being written, made by `Kv.transaction`. Each call returns a new one and leaves this one as it
 * is. Nothing is sent before `commit`, which checks everything.
 */
abstract class TxnDraft<Success extends Answers, Failure extends Answers> {
  protected readonly draft: Draft;
  protected readonly send: Commit;

  constructor(draft: Draft, send: Commit) {
    this.draft = draft;
    this.send = send;
  }

  /**
   * Applies the transaction: all operations at once, under one revision. Each call is a transaction of its own.
   *
   * @throws ServiceError as `Kv.txn`.
   */
  async commit(options: WriteOptions = {}): Promise<TxnOutcome<Success, Failure>> {
    return (await this.send(this.draft, options)) as unknown as TxnOutcome<Success, Failure>;
  }
}

/** The conditions of a transaction, and what it does when all of them hold. */
export class Txn<Success extends Answers = [], Failure extends Answers = []> extends TxnDraft<Success, Failure> {
  /** Adds a condition on a key, on the selected keys, or that a grant holds its lock (`{ held: lock }`). */
  if(condition: TxnCompare): Txn<Success, Failure>;
  if<Target extends KeyTxnCompare['target']>(
    key: KeySelector,
    target: Target,
    is: KeyTxnCompare['is'],
    than: ComparedWith<Target>,
  ): Txn<Success, Failure>;
  if(
    keyOrCondition: KeySelector | TxnCompare,
    target?: KeyTxnCompare['target'],
    is?: KeyTxnCompare['is'],
    than?: KeyTxnCompare['than'],
  ): Txn<Success, Failure> {
    const condition = target === undefined ? keyOrCondition : { key: keyOrCondition, target, is, than };
    return new Txn({ ...this.draft, compare: [...this.draft.compare, condition as TxnCompare] }, this.send);
  }

  /** Puts a key, when the conditions hold. */
  put(
    key: BytesLike,
    value: BytesLike,
    options: Omit<PutPart, 'put' | 'value'> = {},
  ): Txn<[...Success, TxnPutAnswer], Failure> {
    return this.#with({ put: key, value, ...options });
  }

  /** Deletes a key, or the selected keys, when the conditions hold. */
  delete(
    selector: KeySelector,
    options: { readonly prevKv?: boolean | undefined } = {},
  ): Txn<[...Success, TxnDeleteAnswer], Failure> {
    return this.#with({ delete: selector, ...options });
  }

  /** Reads a key, or the selected keys, when the conditions hold. */
  get(selector: KeySelector, options: Omit<GetPart, 'get'> = {}): Txn<[...Success, TxnGetAnswer], Failure> {
    return this.#with({ get: selector, ...options });
  }

  /** What follows is applied when a condition does not hold. */
  else(): TxnElse<Success, Failure> {
    return new TxnElse(this.draft, this.send);
  }

  #with<Answer extends TxnAnswer>(operation: TxnOperation): Txn<[...Success, Answer], Failure> {
    return new Txn({ ...this.draft, success: [...this.draft.success, operation] }, this.send);
  }
}

/** What a transaction does when one of its conditions does not hold. */
export class TxnElse<Success extends Answers = [], Failure extends Answers = []> extends TxnDraft<Success, Failure> {
  /** Puts a key, when a condition does not hold. */
  put(
    key: BytesLike,
    value: BytesLike,
    options: Omit<PutPart, 'put' | 'value'> = {},
  ): TxnElse<Success, [...Failure, TxnPutAnswer]> {
    return this.#with({ put: key, value, ...options });
  }

  /** Deletes a key, or the selected keys, when a condition does not hold. */
  delete(
    selector: KeySelector,
    options: { readonly prevKv?: boolean | undefined } = {},
  ): TxnElse<Success, [...Failure, TxnDeleteAnswer]> {
    return this.#with({ delete: selector, ...options });
  }

  /** Reads a key, or the selected keys, when a condition does not hold. */
  get(selector: KeySelector, options: Omit<GetPart, 'get'> = {}): TxnElse<Success, [...Failure, TxnGetAnswer]> {
    return this.#with({ get: selector, ...options });
  }

  #with<Answer extends TxnAnswer>(operation: TxnOperation): TxnElse<Success, [...Failure, Answer]> {
    return new TxnElse({ ...this.draft, failure: [...this.draft.failure, operation] }, this.send);
  }
}
