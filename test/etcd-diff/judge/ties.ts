/**
 * etcd sorts with an algorithm that keeps no order among equal elements, beyond the few that it sorts by insertion
 * (Go's `sort.Sort`). Which of two pairs with the same version comes first is then anybody's guess, and which of them a
 * limit leaves out. Here such pairs are put in the order of their keys, and those that a limit has parted are only
 * counted.
 */

import type { Operation, RangeStep, TxnStep } from '../requests/requests.ts';
import { type Answer, Exact } from './answers.ts';

/** So many are sorted by insertion, which keeps their order. */
const INSERTED_MAX = 12;
const BY = ['key', 'version', 'create', 'mod', 'value'] as const;
const VALUE = 4;

type Fields = { readonly [name: string]: Answer };

/** The answer to the step without what is anybody's guess. */
export function withoutGuesses(step: RangeStep | TxnStep, answer: Answer): Answer {
  if (!isFields(answer)) return answer;
  if (step.do === 'range') return isFields(answer.range) ? { ...answer, range: ofRange(step, answer.range) } : answer;
  return isFields(answer.txn) ? { ...answer, txn: ofTxn(step, answer.txn) } : answer;
}

function ofTxn({ success, failure }: TxnStep, txn: Fields): Answer {
  const ops: readonly Operation[] = txn.succeeded === true ? success : failure;
  const { responses } = txn;
  if (!Array.isArray(responses)) return txn;
  return {
    ...txn,
    responses: responses.map((response, i) => {
      const op = ops[i];
      return op?.do === 'range' || op?.do === 'txn' ? withoutGuesses(op, response) : response;
    }),
  };
}

function ofRange({ sortTarget = 0, keysOnly = false }: RangeStep, range: Fields): Answer {
  const { kvs, more, count } = range;
  if (sortTarget === 0 || !Array.isArray(kvs) || Number(count) <= INSERTED_MAX) return range;
  const isHidden = sortTarget === VALUE && keysOnly; // It is sorted by what it does not show.
  const runs: Fields[][] = [];
  let last: Answer | undefined;
  for (const kv of kvs.filter(isFields)) {
    const by = isHidden ? '' : plain(kv[BY[sortTarget] ?? 'key'] ?? null);
    if (runs.length > 0 && by === last) runs.at(-1)?.push(kv);
    else runs.push([kv]);
    last = by;
  }
  const parted = more === true ? runs.pop() : undefined;
  const whole = runs.flatMap((run) => run.sort((a, b) => (String(a.key) < String(b.key) ? -1 : 1)));
  return { ...range, kvs: parted === undefined ? whole : [...whole, `${parted.length} of those that are tied`] };
}

function plain(answer: Answer): Answer {
  return answer instanceof Exact ? answer.revision : answer;
}

function isFields(answer: Answer | undefined): answer is Fields {
  return typeof answer === 'object' && answer !== null && !Array.isArray(answer);
}
