/**
 * Turns a violation into something a person can follow: the shortest part of the history that fails, the operation
 * whose answer makes it fail, what was under way beside it, and how far an explanation gets.
 *
 * X1. If a history has an explanation, so has each part of it up to a moment (an operation that has not ended by then
 *     counts as one of unknown outcome). So the shortest part that fails is found by halving.
 */
import type { HistoryRecord } from './history.ts';
import type { Model } from './models.ts';
import { type SearchResult, search } from './search.ts';

interface Violation {
  readonly key: string;
  readonly ops: readonly HistoryRecord[];
  readonly statesMax: number;
}

/** Operations of the explained part that are shown, and of the window. */
const SHOWN_MAX = 12;
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
  const part = upTo(ops, moment);
  const { path, state } = furthest(model, part, statesMax);
  const culprits = part.filter((op) => op.t1 === moment);
  const windowStart = Math.min(...culprits.map((op) => op.t0));
  const placed = new Set(path);
  const beside = part.filter((op) => !culprits.includes(op) && (op.t1 === null || op.t1 >= windowStart));
  const lines = [
    `key ${JSON.stringify(key)}: the ${model.name} cannot have answered so. The first ${high + 1} of ${ends.length} answers suffice:`,
    ...culprits.map((op) => `  this answer has no place:  ${describeOp(op)}`),
    ...section(
      '  while these were under way:',
      beside.map((op) => `${describeOp(op)}${placed.has(op) ? '' : ' (not placed)'}`),
    ),
    ...section('  the longest explanation ends with:', path.map(describeOp)),
    `  and then the state is: ${model.describe(state)}`,
  ];
  return lines.join('\n');
}

/** The search as a person would do it, up to the answer that does not fit; where that takes long, the one that looks ahead. */
function furthest<S>(model: Model<S>, part: readonly HistoryRecord[], statesMax: number): SearchResult<S> {
  const { needs: _needs, gives: _gives, ...straight } = model;
  const found = search(straight, part, { statesMax: Math.min(statesMax, STRAIGHT_STATES_MAX) });
  return found.result === 'violation' ? found : search(model, part, { statesMax });
}

/** The history as it was known at one moment. */
function upTo(ops: readonly HistoryRecord[], moment: number): readonly HistoryRecord[] {
  return ops.filter((op) => op.t0 <= moment).map((op) => (op.t1 === null || op.t1 <= moment ? op : openAgain(op)));
}

function openAgain({ out: _, ...op }: HistoryRecord): HistoryRecord {
  return { ...op, ok: false, t1: null };
}

function section(title: string, lines: readonly string[]): readonly string[] {
  if (lines.length === 0) return [];
  const left = lines.length - SHOWN_MAX;
  const more = left > 0 ? [`    … ${left} before`] : [];
  return [title, ...more, ...lines.slice(-SHOWN_MAX).map((line) => `    ${line}`)];
}

function describeOp(op: HistoryRecord): string {
  const asked = [op.x, op.v].filter((value) => value !== undefined).map((value) => JSON.stringify(value));
  const out = op.out === undefined ? '' : ` ${JSON.stringify(op.out)}`;
  const answer = op.t1 === null ? 'unknown' : `${op.ok ? 'ok' : 'no'}${out}`;
  return `[${op.t0} – ${op.t1 ?? '…'}] client ${op.c}: ${op.op}(${asked.join(' → ')}) = ${answer}`;
}
