/**
 * The verdict on a history of any kind. The operations show what kind of object a key is: a lock is acquired, released
 * or checked, a list is appended to, and anything else is a register. Transactions are judged together.
 *
 * U1. A key has only one kind: no model explains a key that is used as two kinds.
 */
import { checkAppliedOnce } from './applied-once.ts';
import type { Finding } from './check.ts';
import type { HistoryRecord, Op } from './history.ts';
import type { AnyRecord } from './json-lines.ts';
import { type CheckOptions, checkLinearizable, type Verdict } from './linearizability.ts';
import { lockModel } from './lock-model.ts';
import { createAppendModel, registerModel } from './models.ts';
import { checkTransactions } from './txn/check.ts';
import { isTxn, type TxnRecord } from './txn/history.ts';

export interface Judgement {
  /** What was judged, for people: `12 operations on 3 registers`. */
  readonly what: string;
  readonly result: 'ok' | Finding['result'];
  /** Empty if all is well. */
  readonly explanation: string;
}

type Kind = 'register' | 'list' | 'lock';

const KINDS: Readonly<Record<Op, Kind | undefined>> = {
  get: undefined,
  put: 'register',
  del: 'register',
  cas: 'register',
  append: 'list',
  acquire: 'lock',
  release: 'lock',
  check: 'lock',
  force: 'lock',
};

/** One judgement for each kind of object in the history. Throws an `Error` for a key of two kinds (U1). */
export function judge(history: readonly AnyRecord[], options: CheckOptions = {}): readonly Judgement[] {
  const transactions: TxnRecord[] = [];
  const operations: HistoryRecord[] = [];
  for (const record of history) {
    if (isTxn(record)) transactions.push(record);
    else operations.push(record);
  }
  const kinds = kindsOf(operations);
  const judgements: Judgement[] = [];
  for (const kind of ['register', 'list', 'lock'] as const) {
    const part = operations.filter(({ k }) => (kinds.get(k) ?? 'register') === kind);
    if (part.length === 0) continue;
    const keys = new Set(part.map(({ k }) => k)).size;
    judgements.push({
      what: `${part.length} operations on ${keys} of kind ${kind}`,
      ...verdictOn(kind, part, options),
    });
  }
  if (transactions.length > 0) {
    judgements.push({ what: `${transactions.length} transactions`, ...checkTransactions(transactions) });
  }
  return judgements;
}

/** A key that is only read has the kind of its read values. */
function kindsOf(operations: readonly HistoryRecord[]): ReadonlyMap<string, Kind> {
  const kinds = new Map<string, Kind>();
  const read = new Map<string, Kind>();
  for (const { k, op, out } of operations) {
    const kind = KINDS[op];
    if (kind === undefined && Array.isArray(out)) read.set(k, 'list');
    if (kind === undefined) continue;
    const before = kinds.get(k);
    if (before !== undefined && before !== kind) {
      throw new Error(`key ${JSON.stringify(k)} is used as a ${before} and as a ${kind}`);
    }
    kinds.set(k, kind);
  }
  return new Map([...read, ...kinds]);
}

function verdictOn(
  kind: Kind,
  history: readonly HistoryRecord[],
  options: CheckOptions,
): Pick<Verdict, 'result' | 'explanation'> {
  switch (kind) {
    case 'register':
      return checkLinearizable(registerModel, history, options);
    case 'lock':
      return checkLinearizable(lockModel, history, options);
    case 'list': {
      // The findings of the quick check are certain, and shorter.
      const faults = checkAppliedOnce(history);
      if (faults.length > 0) return { result: 'violation', explanation: faults.join('\n') };
      return checkLinearizable(createAppendModel(), history, options);
    }
  }
}
