/**
 * Explains a violation to a person. It shows the shortest failing prefix of the history, reduced to what the failure
 * needs (`shrink.ts`), the operation whose answer makes it fail, and how far an explanation gets.
 *
 * X1. If a history has an explanation, each of its prefixes has one too (an operation that has not ended by then has an
 *     unknown outcome). Therefore bisection finds the shortest failing prefix.
 */
import type { HistoryRecord } from './history.ts';
import type { Model } from './models.ts';
import { type SearchResult, search } from './search.ts';
import { openAgain, shrink } from './shrink.ts';

interface Violation {
  readonly key: string;
  readonly ops: readonly HistoryRecord[];
  readonly statesMax: number;
}

/** How many operations are shown of the explained part, and how many of the explanation. */
const SHOWN_MAX = 16;
const STRAIGHT_STATES_MAX = 20_000;

export function explain<S>(model: Model<S>, { key, ops, statesMax }: Violation): string {
  const ends = ops.flatMap((op) => op.t1 ?? []).sort((a, b) => a - b);
  let low = 0;
  let high = ends.length - 1;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const part = upTo(ops, ends[middle] ?? 0);
    if (search(model, part, { statesMax }).result === 'violation') high = middle;
    else low = middle + 1;
  }
  const moment = ends[high] ?? 0;
  const part = shrink(model, upTo(ops, moment), { statesMax });
  const { path, state } = furthest(model, part, statesMax);
  const isCulprit = (op: HistoryRecord): boolean => op.t1 === moment;
  const lines = [
    `key ${JSON.stringify(key)}: the ${model.name} cannot have answered so. The first ${high + 1} of ${ends.length} answers suffice, and of what was asked by then this:`,
    ...shown(part.map((op) => `${describeOp(op)}${isCulprit(op) ? '   ← has no place' : ''}`)),
    ...(path.length === 0 ? [] : ['  the longest explanation of it:', ...shown(path.map(describeOp))]),
    `  ${path.length === 0 ? 'at the beginning' : 'and then'} the state is: ${model.describe(state)}`,
  ];
  return lines.join('\n');
}

/**
 * Searches as a person would, up to the answer that does not fit. If that takes too long, uses the search that looks
 * ahead.
 */
function furthest<S>(model: Model<S>, part: readonly HistoryRecord[], statesMax: number): SearchResult<S> {
  const { needs: _needs, gives: _gives, ...straight } = model;
  const found = search(straight, part, { statesMax: Math.min(statesMax, STRAIGHT_STATES_MAX) });
  return found.result === 'violation' ? found : search(model, part, { statesMax });
}

/** The history as it was known at one moment. */
function upTo(ops: readonly HistoryRecord[], moment: number): readonly HistoryRecord[] {
  return ops.filter((op) => op.t0 <= moment).map((op) => (op.t1 === null || op.t1 <= moment ? op : openAgain(op)));
}

function shown(lines: readonly string[]): readonly string[] {
  const left = lines.length - SHOWN_MAX;
  const more = left > 0 ? [`    … ${left} before`] : [];
  return [...more, ...lines.slice(-SHOWN_MAX).map((line) => `    ${line}`)];
}

function describeOp(op: HistoryRecord): string {
  const asked = [op.x, op.v].filter((value) => value !== undefined).map((value) => JSON.stringify(value));
  const out = op.out === undefined ? '' : ` ${JSON.stringify(op.out)}`;
  const answer = op.t1 === null ? 'unknown' : `${op.ok ? 'ok' : 'no'}${out}`;
  return `[${op.t0} – ${op.t1 ?? '…'}] client ${op.c}: ${op.op}(${asked.join(' → ')}) = ${answer}`;
}
