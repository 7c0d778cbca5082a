import { binaryString, compareBytes } from '@remora/base';
import type { DeleteResult, KvResult, PartResult, RangeResult } from '@remora/protocol';
import { joined } from '../routing/calls/range-parts.ts';
import type { TxnPlan } from './plan.ts';

/** Puts together the results of a transaction's operations from the pieces that ranges have executed. */
export class Results {
  readonly #plan: Pick<TxnPlan, 'ops'>;
  /**
   * By the operation's number, then by the first key of the piece: both halves of a split range may return the same
   * piece.
   */
  readonly #pieces = new Map<number, Map<string, PartResult>>();

  constructor(plan: Pick<TxnPlan, 'ops'>) {
    this.#plan = plan;
  }

  add(results: readonly PartResult[]): void {
    for (const one of results) {
      const pieces = this.#pieces.get(one.number) ?? new Map<string, PartResult>();
      pieces.set(binaryString(one.key), one);
      this.#pieces.set(one.number, pieces);
    }
  }

  /**
   * Whether there is a result for the piece of an operation that starts at a key. A range returns none for a read at a
   * revision that a merge has compacted since the prepare.
   */
  has(number: number, key: Uint8Array): boolean {
    return this.#pieces.get(number)?.has(binaryString(key)) === true;
  }

  /** The result of an executed operation. A put without a result has a known one (`saysNothing`). */
  of(number: number): KvResult {
    const op = this.#plan.ops[number]?.op;
    const pieces = [...(this.#pieces.get(number)?.values() ?? [])]
      .sort((a, b) => compareBytes(a.key, b.key))
      .map(({ result }) => result);
    switch (op?.type) {
      case 'range':
        return joined(op, pieces.filter(isRange));
      case 'delete':
        return pieces.filter(isDelete).reduce(together, { type: 'delete', deleted: 0, prev: [] });
      default:
        return pieces[0] ?? { type: 'put', prev: undefined };
    }
  }
}

/** Whether the result of an operation is known before it is executed. */
export function saysNothing(op: TxnPlan['ops'][number]['op']): boolean {
  return op.type === 'put' && !op.prevKv;
}

function isRange(result: PartResult['result']): result is RangeResult {
  return result.type === 'range';
}

function isDelete(result: PartResult['result']): result is DeleteResult {
  return result.type === 'delete';
}

function together(a: DeleteResult, b: DeleteResult): DeleteResult {
  return { type: 'delete', deleted: a.deleted + b.deleted, prev: [...a.prev, ...b.prev] };
}
