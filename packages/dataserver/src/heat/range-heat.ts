import type { Span } from '@remora/base';
import {
  coarsened,
  type HeatSpan,
  heatBorder,
  heatBorderAfter,
  heatOfSpans,
  MEASURES,
  spansOfHeat,
} from '@remora/protocol';
import { type KeyedRequest, type KeyLoad, SampledLoad } from './sampled-load.ts';

export interface RangeHeatDeps {
  /** The bounds of the range. */
  readonly bounds: () => Span;
  /** There is load where there was none since the last `take`. */
  readonly onBegin: (heat: RangeHeat) => void;
  /** How many reads, and how many writes, may be sampled at a time. */
  readonly samplesMax: () => number;
}

/** How many columns a range reports for a minute at most. */
export const RANGE_COLUMNS_MAX = 32;
/** A key with so many of the samples is hot. */
const HOT_SAMPLES_MIN = 2;

/**
 * The load of a range by key, as a replica that serves it sees it.
 *
 * RT1. The samples divide the range: each key stands for the keys up to the next sampled one. A key that was sampled
 *      several times is hot by itself, and has a column of its own.
 * RT2. Requests that name no key count for the whole range.
 */
export class RangeHeat {
  readonly #deps: RangeHeatDeps;
  readonly #reads = new SampledLoad();
  readonly #writes = new SampledLoad();
  #isCounting = false;

  constructor(deps: RangeHeatDeps) {
    this.#deps = deps;
  }

  read(request: KeyedRequest, bytes: number): void {
    if (!this.#isCounting) this.#begin();
    this.#reads.count(request, bytes, this.#deps.samplesMax);
  }

  wrote(request: KeyedRequest, bytes: number): void {
    if (!this.#isCounting) this.#begin();
    this.#writes.count(request, bytes, this.#deps.samplesMax);
  }

  #begin(): void {
    this.#isCounting = true;
    this.#deps.onBegin(this);
  }

  /** Returns the load since the last call, in at most `RANGE_COLUMNS_MAX` spans. */
  take(): readonly HeatSpan[] {
    this.#isCounting = false;
    const { start, end } = this.#deps.bounds();
    const bounds = { start: heatBorder(start), end: heatBorder(end) };
    const [reads, writes] = [this.#reads, this.#writes];
    const whole = [reads.requests, reads.bytes, writes.requests, writes.bytes];
    const [readKeys, writeKeys] = [reads.take(), writes.take()];
    const spans = spansOf(readKeys, writeKeys, bounds.end);
    const keyless = [0, 0, 0, 0];
    if (readKeys.length === 0) keyless.splice(0, 2, whole[0] ?? 0, whole[1] ?? 0);
    if (writeKeys.length === 0) keyless.splice(2, 2, whole[2] ?? 0, whole[3] ?? 0);
    if (keyless.some((value) => value > 0)) spans.push({ ...bounds, end: endOf(spans, bounds), values: keyless }); // RT2
    return spansOfHeat(coarsened(heatOfSpans(spans), RANGE_COLUMNS_MAX));
  }
}

/** Spans are cut where the next one begins: one for the whole range goes up to the first key. */
function endOf(spans: readonly HeatSpan[], bounds: { readonly start: string; readonly end: string }): string {
  return spans[0] !== undefined && spans[0].start > bounds.start ? spans[0].start : bounds.end;
}

interface Cell {
  readonly key: string;
  isHot: boolean;
  readonly values: number[];
}

/** RT1. */
function spansOf(reads: readonly KeyLoad[], writes: readonly KeyLoad[], end: string): HeatSpan[] {
  const cells = new Map<string, Cell>();
  const add = (loads: readonly KeyLoad[], first: number): void => {
    for (const { key, samples, requests, bytes } of loads) {
      const cell = cells.get(key) ?? { key, isHot: false, values: new Array<number>(MEASURES).fill(0) };
      cell.isHot ||= samples >= HOT_SAMPLES_MIN;
      cell.values[first] = requests;
      cell.values[first + 1] = bytes;
      cells.set(key, cell);
    }
  };
  add(reads, 0);
  add(writes, 2);
  const sorted = [...cells.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
  return sorted.map(({ key, isHot, values }, i) => {
    const after = heatBorderAfter(key);
    const next = sorted[i + 1]?.key ?? (end > key ? end : end === '' ? '' : after);
    const isOwn = isHot && (next === '' || after < next);
    return { start: key, end: isOwn ? after : next, values };
  });
}
