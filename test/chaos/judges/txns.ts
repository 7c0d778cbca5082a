import { checkTransactions, type Finding, type TxnOp, type TxnRecord } from '../../checkers/index.ts';
import type { Operation, Round } from './evidence.ts';
import { inOrder } from './records.ts';
import { operationsOf } from './timed.ts';
import { findingOf, violations } from './verdicts.ts';

interface AskedTxn extends Operation {
  readonly q: { readonly c: string; readonly ops: readonly TxnOp[] };
  readonly a:
    | {
        readonly ok: boolean;
        readonly reads?: readonly (readonly string[])[];
        /** Of accounts: what is wrong with their balances. */
        readonly wrong?: string;
      }
    | undefined;
}

/** Transactions are strictly serializable. */
export function judgeTxns(round: Round): readonly Finding[] {
  return findingOf('transactions', checkTransactions(recordsOf(operationsOf<AskedTxn>(round, 'txns'))));
}

/**
 * STMs are strictly serializable, and so is what each of their runs has read. Transfers keep the sum of all accounts,
 * in every state that a run has seen.
 */
export function judgeBank(round: Round): readonly Finding[] {
  const asked = operationsOf<AskedTxn>(round, 'bank');
  const wrong = asked.flatMap(({ q, a }) => (a?.wrong === undefined ? [] : `${q.c} has seen ${a.wrong}`));
  return [...findingOf('STMs', checkTransactions(recordsOf(asked))), ...violations('the sum of all accounts', wrong)];
}

function recordsOf(asked: readonly AskedTxn[]): readonly TxnRecord[] {
  return inOrder(asked.map(recordOf));
}

/** A refused transaction stays in the history: no client may see any effect of it. */
function recordOf({ q: { c, ops }, a, t0, t1, how }: AskedTxn): TxnRecord {
  const ok = how === 'done' && a?.ok === true;
  let next = 0;
  const filled = ops.map((op) => (op.op === 'append' || !ok ? op : { ...op, out: a?.reads?.[next++] ?? [] }));
  return { c, op: 'txn', ops: filled, ok, t0, t1: how === 'unknown' ? null : t1 };
}
