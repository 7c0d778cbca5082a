/**
 * Whether two operations of a transaction could change one key, both of which may run: two puts, or a put and a delete,
 * in any order. Written down a second time, pair by pair, so that it does not share a mistake with what it judges.
 */
import type { DeleteStep, Operation, PutStep, TxnStep } from '../requests/requests.ts';

type Change = PutStep | DeleteStep;

export function overlap(txn: TxnStep): boolean {
  return [txn.success, txn.failure].some(overlapIn);
}

function overlapIn(ops: readonly Operation[]): boolean {
  const parts = ops.map(changesOf);
  if (parts.some((part, i) => parts.slice(i + 1).some((other) => part.some((a) => other.some((b) => meet(a, b)))))) {
    return true;
  }
  return ops.some((op) => op.do === 'txn' && overlap(op));
}

/** All that may run, of either branch. */
function changesOf(op: Operation): readonly Change[] {
  if (op.do === 'put' || op.do === 'delete') return [op];
  return op.do === 'txn' ? [...op.success, ...op.failure].flatMap(changesOf) : [];
}

function meet(a: Change, b: Change): boolean {
  if (a.do === 'put') return b.do === 'put' ? a.key === b.key : covers(b, a.key);
  return b.do === 'put' && covers(a, b.key);
}

function covers({ key, end = '' }: DeleteStep, one: string): boolean {
  if (end === '') return one === key;
  return one >= key && (end === '\0' || one < end);
}
