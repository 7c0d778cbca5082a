/**
 * Histories of transactions over lists: each appends elements to lists and reads lists, of several keys, in order. As
 * every element is unique and lists only grow, a list that was read tells which transactions wrote it, and in which
 * order; this is what `check.ts` rests on.
 *
 * T1. An element is appended to a key once in the whole history. A retry under the same request is the same one.
 * T2. `ok` with a `t1`: committed, and every `get` has its `out` (the empty list where the key is absent). Not `ok`
 *     with a `t1`: certainly without effect. `t1: null`: unknown; it took effect at any time after `t0`, or never.
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

/** One transaction under way. The first answer counts. */
export interface OpenTxn {
  /** The lists that its `get`s answered with, in their order; undefined leaves what was asked as it is. */
  committed(reads?: readonly (readonly string[])[]): void;
  /** What it did is known from its answer only, in place of what was asked. */
  committedAs(ops: readonly TxnOp[]): void;
  /** It certainly had no effect. It stays in the history: nobody may see anything of it. */
  aborted(): void;
  /** The outcome is unknown, and stays so. */
  unknown(): void;
}

/** Gathers a history of transactions. A run longer than `recordsMax` is a mistake of the test, and stops it. */
export class TxnRecorder {
  readonly #nowNs: () => number;
  readonly #recordsMax: number;
  readonly #records: TxnRecord[] = [];

  constructor(nowNs: () => number, options: { readonly recordsMax?: number } = {}) {
    this.#nowNs = nowNs;
    this.#recordsMax = options.recordsMax ?? 1_000_000;
  }

  /** `t0`: an earlier time for a read that may show any state since then. */
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

  /** What happened so far, by begin; transactions still under way count as unknown. */
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
