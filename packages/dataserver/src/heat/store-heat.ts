import type { Span } from '@remora/base';
import { coarsened, HEAT_COLUMNS_MAX, type HeatColumns, heatOfSpans } from '@remora/protocol';
import { RangeHeat } from './range-heat.ts';
import { KEY_SAMPLES_MAX } from './sampled-load.ts';

/** How many keys a node samples at a time, of all its ranges: reads and writes each have half of them. */
const NODE_SAMPLES_MAX = 16_384;

/**
 * The load on the ranges of a node by key, for the history of the masters' leader.
 *
 * SH1. A report has at most `HEAT_COLUMNS_MAX` columns, however many ranges there are: the history keeps no more.
 * SH2. The node samples at most `NODE_SAMPLES_MAX` keys at a time. If many ranges have load, each has fewer of them,
 *      but at least one for its reads and one for its writes.
 * SH3. A range without load costs nothing.
 */
export class StoreHeat {
  /** The ranges that had load since the last report. */
  readonly #loaded = new Set<RangeHeat>();
  #samplesMax = KEY_SAMPLES_MAX;

  /** The load of a range. */
  ofRange(bounds: () => Span): RangeHeat {
    return new RangeHeat({ bounds, onBegin: (heat) => this.#begin(heat), samplesMax: () => this.#samplesMax });
  }

  #begin(heat: RangeHeat): void {
    this.#loaded.add(heat);
    this.#share();
  }

  /** SH2. */
  #share(): void {
    const share = Math.floor(NODE_SAMPLES_MAX / 2 / Math.max(1, this.#loaded.size));
    this.#samplesMax = Math.max(1, Math.min(KEY_SAMPLES_MAX, share));
  }

  /** Returns the load since the last call; undefined if there was none. */
  take(): HeatColumns | undefined {
    if (this.#loaded.size === 0) return undefined;
    const spans = [...this.#loaded].flatMap((heat) => heat.take());
    this.#loaded.clear();
    this.#share();
    const { borders, values } = coarsened(heatOfSpans(spans), HEAT_COLUMNS_MAX); // SH1
    return {
      borders: borders.map((border) => Buffer.from(border, 'latin1')),
      values: Array.from(values, Math.round),
    };
  }
}
