/**
 * Counters and histograms that cost one addition per count, because those of prom-client look up their labels each
 * time. Its registry renders them: it only needs their `get`.
 */
import type { Histogram, HistogramReading, MetricDefinition, ObservedCounter } from '../metrics.ts';

type Labels = Readonly<Record<string, string>>;

/** The series of a metric, one for each combination of label values. */
class SeriesTable<Series> {
  readonly #labels: readonly string[];
  readonly #make: () => Series;
  readonly #series = new Map<string, { readonly labels: Labels; readonly series: Series }>();

  constructor(labels: readonly string[], make: () => Series) {
    this.#labels = labels;
    this.#make = make;
  }

  of(values: readonly string[]): Series {
    if (values.length !== this.#labels.length) {
      throw new TypeError(`expected values for ${this.#labels.length} labels, not ${values.length}`);
    }
    const key = JSON.stringify(values);
    const known = this.#series.get(key);
    if (known !== undefined) return known.series;
    const labels = Object.fromEntries(this.#labels.map((label, i) => [label, values[i] ?? '']));
    const series = this.#make();
    this.#series.set(key, { labels, series });
    return series;
  }

  [Symbol.iterator]() {
    return this.#series.values();
  }
}

abstract class Tally {
  readonly name: string;
  readonly help: string;
  abstract readonly type: 'counter' | 'histogram';
  /** Over several processes. */
  readonly aggregator = 'sum';

  constructor({ name, help }: MetricDefinition) {
    this.name = name;
    this.help = help;
  }

  /** In the form of prom-client's own metrics. */
  async get() {
    const { name, help, type, aggregator } = this;
    return { name, help, type, aggregator, values: [...this.values()] };
  }

  protected abstract values(): Iterable<NamedValue>;
}

interface NamedValue {
  /** Differs from the metric's own name in some cases. */
  readonly metricName?: string;
  readonly labels: Labels;
  readonly value: number;
}

export class FastCounter extends Tally implements ObservedCounter {
  readonly type = 'counter';
  readonly #series: SeriesTable<CounterSeries>;

  constructor(definition: MetricDefinition) {
    super(definition);
    const { labels = [] } = definition;
    this.#series = new SeriesTable(labels, () => new CounterSeries());
    // Without labels there is one series from the beginning.
    if (labels.length === 0) this.#series.of([]);
  }

  inc(by?: number): void {
    this.#series.of([]).inc(by);
  }

  set(value: number): void {
    this.#series.of([]).set(value);
  }

  labels(...values: readonly string[]): ObservedCounter {
    return this.#series.of(values);
  }

  protected override *values(): Iterable<NamedValue> {
    for (const { labels, series } of this.#series) yield { labels, value: series.value };
  }
}

class CounterSeries implements ObservedCounter {
  value = 0;

  inc(by = 1): void {
    if (by < 0) throw new RangeError('a counter only grows');
    this.value += by;
  }

  set(value: number): void {
    this.value = value;
  }

  labels(): never {
    return boundTwice();
  }
}

export class FastHistogram extends Tally implements Histogram {
  readonly type = 'histogram';
  readonly #bounds: readonly number[];
  readonly #series: SeriesTable<HistogramSeries>;

  constructor(definition: MetricDefinition, bounds: readonly number[]) {
    super(definition);
    const { labels = [] } = definition;
    this.#bounds = bounds;
    this.#series = new SeriesTable(labels, () => new HistogramSeries(bounds));
    if (labels.length === 0) this.#series.of([]);
  }

  observe(value: number, times?: number): void {
    this.#series.of([]).observe(value, times);
  }

  labels(...values: readonly string[]): Histogram {
    return this.#series.of(values);
  }

  get reading(): HistogramReading {
    const series = [...this.#series].map(({ labels, series: { counts } }) => ({ labels, counts: [...counts] }));
    return { bounds: this.#bounds, series };
  }

  protected override *values(): Iterable<NamedValue> {
    for (const { labels, series } of this.#series) {
      let count = 0;
      for (const [i, bound] of [...this.#bounds, '+Inf'].entries()) {
        count += series.counts[i] ?? 0;
        yield { metricName: `${this.name}_bucket`, labels: { le: String(bound), ...labels }, value: count };
      }
      yield { metricName: `${this.name}_sum`, labels, value: series.sum };
      yield { metricName: `${this.name}_count`, labels, value: count };
    }
  }
}

class HistogramSeries implements Histogram {
  readonly #bounds: readonly number[];
  /** Counts of each bucket alone; the last one is for values above all bounds. */
  readonly counts: number[];
  sum = 0;

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.counts = new Array<number>(bounds.length + 1).fill(0);
  }

  observe(value: number, times = 1): void {
    const bounds = this.#bounds;
    let bucket = 0;
    while (bucket < bounds.length && value > (bounds[bucket] as number)) bucket++;
    this.counts[bucket] = (this.counts[bucket] as number) + times;
    this.sum += value * times;
  }

  labels(): never {
    return boundTwice();
  }
}

/** The labels of a series are already bound. Its type has them because the whole metric's type does. */
export function boundTwice(): never {
  throw new TypeError('the labels of this metric are bound already');
}
