/** The checkers of whole histories in the form of a check: they gather records, and judge at the end. */
import { assert } from '@remora/base';
import { checkAppliedOnce } from '../applied-once.ts';
import { type Check, type Finding, NOTHING, violation } from '../check.ts';
import type { HistoryRecord } from '../history.ts';
import { type CheckOptions, checkLinearizable } from '../linearizability.ts';
import type { Model } from '../models.ts';
import { checkTransactions, type TxnCheckOptions } from '../txn/check.ts';
import type { TxnRecord } from '../txn/history.ts';

/** Records that a check gathers; more are a mistake of the test. */
const RECORDS_MAX = 2_000_000;

class Gathering<Record> implements Check<Record> {
  readonly name: string;
  readonly #judge: (history: readonly Record[]) => readonly Finding[];
  readonly #records: Record[] = [];

  constructor(name: string, judge: (history: readonly Record[]) => readonly Finding[]) {
    this.name = name;
    this.#judge = judge;
  }

  observe(record: Record): readonly Finding[] {
    assert(this.#records.length < RECORDS_MAX, `a history has at most ${RECORDS_MAX} records`);
    this.#records.push(record);
    return NOTHING;
  }

  finish(): readonly Finding[] {
    return this.#judge(this.#records);
  }
}

export function linearizable<S>(createModel: () => Model<S>, options: CheckOptions = {}): Check<HistoryRecord> {
  const model = createModel();
  const property = `linearizable: ${model.name}`;
  return new Gathering(property, (history) => findingOf(property, checkLinearizable(model, history, options)));
}

export function strictlySerializable(options: TxnCheckOptions = {}): Check<TxnRecord> {
  const property = options.level === undefined || options.level === 'strict' ? 'strictly serializable' : 'serializable';
  return new Gathering(property, (history) => findingOf(property, checkTransactions(history, options)));
}

export function appliedOnce(): Check<HistoryRecord> {
  return new Gathering('applied once', (history) =>
    checkAppliedOnce(history).map((fault) => violation('applied once', fault)),
  );
}

function findingOf(
  property: string,
  { result, explanation }: { readonly result: 'ok' | Finding['result']; readonly explanation: string },
): readonly Finding[] {
  return result === 'ok' ? NOTHING : [{ result, property, detail: explanation }];
}
