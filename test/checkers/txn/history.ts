/**
 * Histories of transactions over lists. Each transaction appends elements to lists and reads lists, of several keys, in
 * order. Because every element is unique and lists only grow, a read list reveals which transactions wrote it, and in
 * which order. `check.ts` depends on this.
 *
 * T1. An element is appended to a key only once in the whole history. A retry with the same request id is the same
 *     append.
 * T2. `ok` with a `t1`: committed, and every `get` has its `out` (the empty list if the key is absent). Not `ok` with a
 *     `t1`: certainly without effect. `t1: null`: unknown; the transaction took effect at any time after `t0`, or
 *     never.
 * T3. A transaction sees its own appends.
 */
import { assert } from '@remora/base';

export type TxnOp =
  | { readonly k: string; readonly op: 'append'; readonly v: string }
  | { readonly k: string; readonly op: 'get'; readonly out?: readonly string[] };

export interface TxnRecord {
  readonly c: string | number;
  readonly op: 'txn';
  readonly ops: readonly TxnOp[];
  readonly ok: boolean;
  /** Nanoseconds since some moment. */
  readonly t0: number;
  readonly t1: number | null;
}

export function isTxn(record: { readonly op: string }): record is TxnRecord {
  return record.op === 'txn';
}

/** One transaction in progress. The first answer counts. */
export interface OpenTxn {
  /** The lists that its `get`s returned, in order. Undefined leaves the requested operations unchanged. */
  committed(reads?: readonly (readonly string[])[]): void;
  /** Only the answer reveals what it did: these operations replace the requested ones. */
  committedAs(ops: readonly TxnOp[]): void;
  /** It certainly had no effect. It stays in the history, because no client may see any effect of it. */
  aborted(): void;
  /** The outcome is unknown, and stays unknown. */
  unknown(): void;
}

/**
 * Records a history of transactions. A run with more than `recordsMax` records is a mistake of the test, and is
 * stopped.
 */
export class TxnRecorder {
  readonly #nowNs: () => number;
  readonly #recordsMax: number;
  readonly #records: TxnRecord[] = [];

  constructor(nowNs: () => number, options: { readonly recordsMax?: number } = {}) {
    this.#nowNs = nowNs;
    this.#recordsMax = options.recordsMax ?? 1_000_000;
  }

  /** `t0`: an earlier time, for a read that may show any state since then. */
  begin({ c, ops, t0 }: Pick<TxnRecord, 'c' | 'ops'> & { readonly t0?: number }): OpenTxn {
    assert(this.#records.length < this.#recordsMax, `a history has at most ${this.#recordsMax} transactions`);
    const at = this.#records.length;
    const open: TxnRecord = { c, op: 'txn', ops, ok: false, t0: t0 ?? this.#nowNs(), t1: null };
    this.#records.push(open);
    let answered = false;
    const settle = (record: TxnRecord): void => {
      if (!answered) this.#records[at] = record;
      answered = true;
    };
    return {
      committed: (reads) =>
        settle({ ...open, ops: reads === undefined ? ops : withReads(ops, reads), ok: true, t1: this.#nowNs() }),
      committedAs: (performed) => settle({ ...open, ops: performed, ok: true, t1: this.#nowNs() }),
      aborted: () => settle({ ...open, t1: this.#nowNs() }),
      unknown: () => settle(open),
    };
  }

  /** The history so far, in the order of beginnings. Transactions in progress have an unknown outcome. */
  records(): readonly TxnRecord[] {
    return [...this.#records];
  }
}

function withReads(ops: readonly TxnOp[], reads: readonly (readonly string[])[]): readonly TxnOp[] {
  let next = 0;
  const filled = ops.map((op) => {
    if (op.op === 'append') return op;
    const out = reads[next++];
    assert(out !== undefined, 'every get has its answer');
    return { ...op, out };
  });
  assert(next === reads.length, 'every answer has its get');
  return filled;
}
