// M1. A repeated definition returns the same metric, so that each part of a process may declare what it counts; a
//     definition with another type or other labels is a broken invariant.
// M2. A hot path costs one addition: bound label values are resolved once, by `labels`.
import { collectDefaultMetrics, type Metric, Gauge as PromGauge, Registry } from 'prom-client';
import { assert } from '../assert.ts';
import { loopSection } from '../loop-sections.ts';
import {
  type Counter,
  type Gauge,
  type Histogram,
  type HistogramDefinition,
  type HistogramReading,
  LATENCY_BUCKETS_SECONDS,
  type MetricDefinition,
  type Metrics,
  type ObservedCounter,
} from '../metrics.ts';
import { boundTwice, FastCounter, FastHistogram } from './fast-metrics.ts';

/** Metrics that Prometheus can read. */
export interface MetricsRegistry extends Metrics {
  /** The content type of `render`'s result. */
  readonly contentType: string;
  /** Everything counted so far, in Prometheus' text format. */
  render(): Promise<string>;
  /** What the histogram of this name has counted; undefined: there is none. */
  reading(name: string): HistogramReading | undefined;
  /** A counter that is kept elsewhere. Set it before each rendering. */
  observedCounter(definition: MetricDefinition): ObservedCounter;
  /**
   * A gauge for things that come and go: its series are those that were set since the last `clear`, and are forgotten
   * after a rendering. So set it before each (`onRender`).
   */
  clearableGauge(definition: MetricDefinition): Gauge & { clear(): void };
  /** Calls `fn` before each rendering, to set gauges and counters from state that is kept elsewhere. */
  onRender(fn: () => void): void;
}

export interface MetricsOptions {
  /** Also report the process itself: memory, CPU, garbage collection, event loop lag. */
  readonly process?: boolean;
}

/** Each sample of the event loop lag wakes the process. At the default of 10 ms they were a third of all wake-ups. */
const LOOP_SAMPLE_MS = 500;

/** A registry of its own; several in one process do not mix. */
export function createMetrics(options: MetricsOptions = {}): MetricsRegistry {
  return new PromMetrics(options);
}

type Kind = 'counter' | 'gauge' | 'histogram';

class PromMetrics implements MetricsRegistry {
  readonly #registry = new Registry();
  readonly #known = new Map<string, { readonly shape: string; readonly metric: unknown }>();
  readonly #beforeRender: (() => void)[] = [];
  readonly #clearable = new Set<{ clear(): void }>();
  #rendering = 0;

  constructor(options: MetricsOptions) {
    if (!options.process) return;
    collectDefaultMetrics({ register: this.#registry, eventLoopMonitoringPrecision: LOOP_SAMPLE_MS });
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  counter(definition: MetricDefinition): Counter {
    return this.observedCounter(definition);
  }

  observedCounter(definition: MetricDefinition): ObservedCounter {
    return this.#once('counter', definition, () => this.#register(new FastCounter(definition)));
  }

  gauge(definition: MetricDefinition): Gauge {
    return this.#gauge(definition);
  }

  clearableGauge(definition: MetricDefinition): Gauge & { clear(): void } {
    const gauge = this.#gauge(definition);
    this.#clearable.add(gauge);
    return gauge;
  }

  #gauge(definition: MetricDefinition): Gauge & { clear(): void } {
    return this.#once('gauge', definition, () => bindGauge(new PromGauge(this.#configuration(definition))));
  }

  histogram(definition: HistogramDefinition): Histogram {
    const buckets = [...(definition.buckets ?? LATENCY_BUCKETS_SECONDS)];
    return this.#once('histogram', definition, () => this.#register(new FastHistogram(definition, buckets)));
  }

  reading(name: string): HistogramReading | undefined {
    const metric = this.#known.get(name)?.metric;
    return metric instanceof FastHistogram ? metric.reading : undefined;
  }

  onRender(fn: () => void): void {
    this.#beforeRender.push(fn);
  }

  async render(): Promise<string> {
    loopSection('metrics', () => {
      for (const fn of this.#beforeRender) fn();
    });
    this.#rendering++;
    try {
      return await this.#registry.metrics();
    } finally {
      // Series of thousands of ranges take more memory than the ranges' own counts.
      if (--this.#rendering === 0) for (const gauge of this.#clearable) gauge.clear();
    }
  }

  #register<Tally extends FastCounter | FastHistogram>(tally: Tally): Tally {
    // A registry only uses a metric's name and `get`; the type also has the methods that count.
    this.#registry.registerMetric(tally as unknown as Metric<string>);
    return tally;
  }

  #configuration({ name, help, labels = [] }: MetricDefinition) {
    return { name, help, labelNames: [...labels], registers: [this.#registry] };
  }

  #once<M>(kind: Kind, { name, labels = [] }: MetricDefinition, make: () => M): M {
    const shape = `${kind}(${labels.join(',')})`;
    const known = this.#known.get(name);
    if (known === undefined) {
      const metric = make();
      this.#known.set(name, { shape, metric });
      return metric;
    }
    assert(known.shape === shape, `M1: metric ${name} is ${known.shape} and was asked for as ${shape}`);
    return known.metric as M;
  }
}

// prom-client's own `labels` returns an object without `labels`; the types and this function refuse to bind twice.
function bindGauge(metric: PromGauge): Gauge & { clear(): void } {
  return {
    clear: () => metric.reset(),
    set: (value) => metric.set(value),
    inc: (by) => metric.inc(by ?? 1),
    dec: (by) => metric.dec(by ?? 1),
    labels: (...values) => {
      const bound = metric.labels(...values);
      return {
        set: (value) => bound.set(value),
        inc: (by) => bound.inc(by ?? 1),
        dec: (by) => bound.dec(by ?? 1),
        labels: boundTwice,
      };
    },
  };
}
