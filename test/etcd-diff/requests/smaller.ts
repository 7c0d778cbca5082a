/** Steps that ask for a little less: each leaves out one part of a transaction, or one option. */
import type { Operation, Step, TxnStep } from './requests.ts';

export function* smallerSteps(step: Step): Generator<Step> {
  if (step.do === 'txn') yield* smallerTxns(step);
  else if (step.do !== 'compact') yield* withoutOptions(step);
}

function* smallerTxns(step: TxnStep): Generator<TxnStep> {
  for (const compare of without(step.compare)) yield { ...step, compare };
  for (const list of ['success', 'failure'] as const) {
    for (const part of without(step[list])) yield { ...step, [list]: part };
    for (const [i, op] of step[list].entries()) {
      for (const smaller of smallerOperations(op)) yield { ...step, [list]: step[list].with(i, smaller) };
    }
  }
}

function* smallerOperations(op: Operation): Generator<Operation> {
  if (op.do === 'txn') {
    yield* [...op.success, ...op.failure];
    yield* smallerTxns(op);
  } else if (op.do !== 'nothing') yield* withoutOptions(op);
}

const NEEDED: ReadonlySet<string> = new Set(['do', 'key', 'end', 'value', 'watch', 'stream', 'lease', 'ttl', 'keys']);

/** `lease` is an option of a put only. */
function* withoutOptions<T extends object>(step: T): Generator<T> {
  const isPut = 'do' in step && step.do === 'put';
  for (const [name, value] of Object.entries(step)) {
    if ((NEEDED.has(name) && !(isPut && name === 'lease')) || value === undefined) continue;
    const { [name]: _, ...rest } = step as { readonly [name: string]: unknown };
    yield rest as T;
  }
}

function* without<T>(list: readonly T[]): Generator<readonly T[]> {
  for (const i of list.keys()) yield list.toSpliced(i, 1);
}
