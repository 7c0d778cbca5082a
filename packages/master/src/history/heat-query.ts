/**
 * The load of a span of keys in a span of time, in columns that all minutes share.
 *
 * HQ1. The columns are those that divide the load of all minutes together best; each minute is then brought onto them.
 * HQ2. The work is done in turns of a few milliseconds: a query of the whole history takes a third of a second in
 *      all, and the masters' leader has to answer heartbeats meanwhile.
 */
import {
  addedHeat,
  coarsened,
  givenBorder,
  HEAT_MEASURES,
  type Heat,
  type HeatReply,
  type HeatRequest,
  type HistorySpan,
  heatBorderAfter,
  MEASURES,
  NO_HEAT,
  onBorders,
  weightOfMeasure,
} from '@remora/protocol';

/** HQ2. */
const MINUTES_PER_TURN = 2;
/** The columns of several minutes together, while they are added, for each column of the answer. */
const WORKING_COLUMNS = 4;

type History = (minute: number) => Heat | undefined;

/** Yields after each turn of work. */
export function* heatQuery(history: History, span: HistorySpan, request: HeatRequest): Generator<void, HeatReply> {
  const { columns, measure } = request;
  const keys = keysOf(request);
  const minutes = Array.from({ length: span.count }, (_, i) => span.first + i);
  const weightOf = weightOfMeasure(measure);
  const plus: Plus = (a, b) => coarsened(addedHeat(a, b), columns * WORKING_COLUMNS, weightOf);
  const sums: Sum[] = [];
  for (const [i, minute] of minutes.entries()) {
    const heat = history(minute);
    if (heat !== undefined) yield* add(sums, inside(heat, keys), plus);
    if (isTurn(i)) yield;
  }
  const all = yield* totalOf(sums, plus);
  const { borders, first, count } = columnsOf(all, keys, request);
  const values = new Float32Array(minutes.length * count).fill(Number.NaN);
  const m = HEAT_MEASURES.indexOf(measure);
  for (const [i, minute] of minutes.entries()) {
    const heat = history(minute);
    if (heat !== undefined) {
      const on = onBorders(heat, borders);
      for (let c = 0; c < count; c++) values[i * count + c] = on[(first + c) * MEASURES + m] as number;
    }
    if (isTurn(i)) yield;
  }
  const shown = borders.slice(first, first + count);
  return { span, borders: shown.map((border) => Buffer.from(border, 'latin1')), values };
}

/** The load of some minutes together. */
interface Sum {
  readonly minutes: number;
  readonly heat: Heat;
}

type Plus = (a: Heat, b: Heat) => Heat;

/** Keeps sums of 1, 2, 4 … minutes, so that each border is moved some nine times and not 360 times. */
function* add(sums: Sum[], heat: Heat, plus: Plus): Generator<void> {
  let sum: Sum = { minutes: 1, heat };
  for (let last = sums.at(-1); last?.minutes === sum.minutes; last = sums.at(-1)) {
    sums.pop();
    sum = { minutes: 2 * sum.minutes, heat: plus(last.heat, sum.heat) };
    if (sum.minutes > MINUTES_PER_TURN) yield;
  }
  sums.push(sum);
}

function* totalOf(sums: readonly Sum[], plus: Plus): Generator<void, Heat> {
  let total = NO_HEAT;
  for (const { heat } of [...sums].reverse()) {
    total = plus(total, heat);
    yield;
  }
  return total;
}

function isTurn(i: number): boolean {
  return i % MINUTES_PER_TURN === MINUTES_PER_TURN - 1;
}

/** A span of borders; an empty `end` is no bound. */
interface Keys {
  readonly start: string;
  readonly end: string;
}

function keysOf(request: HeatRequest): Keys {
  const [start, end] = [givenBorder(request.start), givenBorder(request.end)];
  // Long keys that begin alike have one border.
  return { start, end: end !== '' && end <= start ? heatBorderAfter(start) : end };
}

/** Load outside of the span does not count when columns are chosen. */
function inside(heat: Heat, { start, end }: Keys): Heat {
  if (start === '' && end === '') return heat;
  const edges = [...new Set(['', start, end])];
  const { borders } = addedHeat(heat, { borders: edges, values: new Float64Array(edges.length * MEASURES) });
  const values = onBorders(heat, borders);
  for (const [i, border] of borders.entries()) {
    if (border < start || (end !== '' && border >= end)) values.fill(0, i * MEASURES, (i + 1) * MEASURES);
  }
  return { borders, values };
}

/** Borders that cover all keys; `count` columns from the one at `first` on are the span. */
function columnsOf(
  all: Heat,
  { start, end }: Keys,
  { columns, measure }: HeatRequest,
): { readonly borders: readonly string[]; readonly first: number; readonly count: number } {
  const within = ['', ...all.borders.filter((border) => border > start && (end === '' || border < end))];
  const chosen = coarsened({ borders: within, values: onBorders(all, within) }, columns, weightOfMeasure(measure));
  const before = start === '' ? [] : [''];
  const behind = end === '' ? [] : [end];
  const borders = [...before, start, ...chosen.borders.slice(1), ...behind];
  return { borders, first: before.length, count: chosen.borders.length };
}
