/**
 * Metrics, as a port, so that pure packages count without knowing Prometheus. Names follow its conventions:
 * `remora_<subsystem>_<what>_<unit>`, counters end in `_total`, times are in seconds and sizes in bytes.
 *
 * Labels are fixed when the metric is made. Their values must come from a small closed set (a method, a code): each
 * combination is a time series that lives as long as the process.
 */
export interface Metrics {
  counter(definition: MetricDefinition): Counter;
  gauge(definition: MetricDefinition): Gauge;
  histogram(definition: HistogramDefinition): Histogram;
}

export interface MetricDefinition {
  readonly name: string;
  readonly help: string;
  readonly labels?: readonly string[];
}

export interface HistogramDefinition extends MetricDefinition {
  /** Upper bounds, growing; `LATENCY_BUCKETS_SECONDS` unless given. */
  readonly buckets?: readonly number[];
}

/**
 * Only grows. `labels(...)` binds values, in the order of the definition; bind once and keep the result on hot paths.
 */
export interface Counter {
  inc(by?: number): void;
  labels(...values: readonly string[]): Counter;
}

/** A counter that is kept elsewhere: `set` takes its present value over. */
export interface ObservedCounter extends Counter {
  set(value: number): void;
  labels(...values: readonly string[]): ObservedCounter;
}

export interface Gauge {
  set(value: number): void;
  inc(by?: number): void;
  dec(by?: number): void;
  labels(...values: readonly string[]): Gauge;
}

export interface Histogram {
  /** `times`: how often, for a value that stands for several (a sample). */
  observe(value: number, times?: number): void;
  labels(...values: readonly string[]): Histogram;
}

/** What a histogram has counted so far. */
export interface HistogramReading {
  /** Upper bounds, growing. */
  readonly bounds: readonly number[];
  readonly series: readonly {
    readonly labels: Readonly<Record<string, string>>;
    /** Of each bucket alone; the last one is for values above all bounds. */
    readonly counts: readonly number[];
  }[];
}

/** From 100 µs to 10 s: the range of a request's duration, from a read in memory to a deadline. */
export const LATENCY_BUCKETS_SECONDS: readonly number[] = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];

const NO_OP = {
  inc() {},
  dec() {},
  set() {},
  observe() {},
  labels: () => NO_OP,
};

/** Counts nothing: for tests and for libraries used without metrics. */
export const silentMetrics: Metrics = {
  counter: () => NO_OP,
  gauge: () => NO_OP,
  histogram: () => NO_OP,
};
