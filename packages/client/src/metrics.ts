/** `remora/metrics`: adapters that pass the numbers of a client to `prom-client` or to OpenTelemetry. */
import {
  CLIENT_METRICS,
  type ClientMetrics,
  type CounterName,
  type HistogramName,
  type MetricName,
} from './observe/client-metrics.ts';

export {
  CLIENT_METRICS,
  type ClientMetrics,
  type CounterName,
  type HistogramName,
  type MetricLabels,
  type MetricName,
} from './observe/client-metrics.ts';

/** From a request on a fast network to a long wait for a lock, in seconds. */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60, 600];

/** The part of `prom-client` that is used: pass the module itself. */
export interface PromClient<Registry> {
  readonly Counter: new (options: PromOptions<Registry>) => { inc(labels: Record<string, string>): void };
  readonly Histogram: new (
    options: PromOptions<Registry> & { readonly buckets: number[] },
  ) => { observe(labels: Record<string, string>, value: number): void };
}

interface PromOptions<Registry> {
  readonly name: string;
  readonly help: string;
  readonly labelNames: string[];
  readonly registers?: Registry[];
}

/**
 * Reports to `prom-client`. Make one for each registry, and pass it to all clients of the process.
 *
 * ```ts
 * const remora = await connect({ endpoints, metrics: prometheusMetrics(promClient) });
 * ```
 *
 * `registry`: where the metrics are registered. Default: the registry of `prom-client`.
 */
export function prometheusMetrics<Registry>(client: PromClient<Registry>, registry?: Registry): ClientMetrics {
  const registers = registry === undefined ? {} : { registers: [registry] };
  const options = (name: MetricName): PromOptions<Registry> => {
    const { help, labels } = CLIENT_METRICS[name];
    return { name, help, labelNames: [...labels], ...registers };
  };
  const counters = byName('counter', (name) => new client.Counter(options(name)));
  const histograms = byName('histogram', (name) => new client.Histogram({ ...options(name), buckets: BUCKETS }));
  return {
    count: (name, labels) => counters.get(name)?.inc({ ...labels }),
    observe: (name, seconds, labels) => histograms.get(name)?.observe({ ...labels }, seconds),
  };
}

/** The part of OpenTelemetry's `Meter` that is used: any meter of `@opentelemetry/api` fits. */
export interface OpenTelemetryMeter {
  createCounter(name: string, options: { readonly description: string }): OpenTelemetryCounter;
  createHistogram(
    name: string,
    options: {
      readonly description: string;
      readonly unit: string;
      readonly advice: { readonly explicitBucketBoundaries: number[] };
    },
  ): OpenTelemetryHistogram;
}

interface OpenTelemetryCounter {
  add(value: number, attributes: Record<string, string>): void;
}

interface OpenTelemetryHistogram {
  record(value: number, attributes: Record<string, string>): void;
}

/** Reports to OpenTelemetry, under names with dots: `remora.client.requests`, `remora.client.request.duration`. */
export function openTelemetryMetrics(meter: OpenTelemetryMeter): ClientMetrics {
  const description = (name: MetricName): string => CLIENT_METRICS[name].help;
  const counters = byName('counter', (name) => meter.createCounter(dotted(name), { description: description(name) }));
  const advice = { explicitBucketBoundaries: BUCKETS };
  const histograms = byName('histogram', (name) =>
    meter.createHistogram(dotted(name), { description: description(name), unit: 's', advice }),
  );
  return {
    count: (name, labels) => counters.get(name)?.add(1, { ...labels }),
    observe: (name, seconds, labels) => histograms.get(name)?.record(seconds, { ...labels }),
  };
}

function byName<Instrument>(
  kind: 'counter' | 'histogram',
  make: (name: MetricName) => Instrument,
): ReadonlyMap<CounterName | HistogramName, Instrument> {
  const names = (Object.keys(CLIENT_METRICS) as MetricName[]).filter((name) => CLIENT_METRICS[name].kind === kind);
  return new Map(names.map((name) => [name, make(name)]));
}

/** `remora_client_lock_wait_seconds` is `remora.client.lock.wait.duration`. */
function dotted(name: MetricName): string {
  return name
    .replace(/_total$/, '')
    .replace(/_seconds$/, '_duration')
    .replaceAll('_', '.');
}
