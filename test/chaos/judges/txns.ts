import { checkTransactions, type Finding, type TxnOp, type TxnRecord } from '../../checkers/index.ts';
import type { Operation, Round } from './evidence.ts';
import { inOrder } from './records.ts';
import { findingOf } from './verdicts.ts';

interface AskedTxn extends Operation {
  readonly q: { readonly c: string; readonly ops: readonly TxnOp[] };
  readonly a: { readonly ok: boolean; readonly reads?: readonly (readonly string[])[] } | undefined;
}

/** Transactions are strictly serializable. */
export function judgeTxns(round: Round): readonly Finding[] {
  const asked = round.operations.filter(({ w }) => w === 'txns') as unknown as readonly AskedTxn[];
  return findingOf('transactions', checkTransactions(inOrder(asked.map(recordOf))));
}

/** A refused transaction stays in the history: no client may see any effect of it. */
function recordOf({ q: { c, ops }, a, t0, t1, how }: AskedTxn): TxnRecord {
  const ok = how === 'done' && a?.ok === true;
  let next = 0;
  const filled = ops.map((op) => (op.op === 'append' || !ok ? op : { ...op, out: a?.reads?.[next++] ?? [] }));
  return { c, op: 'txn', ops: filled, ok, t0, t1: how === 'unknown' ? null : t1 };
}
