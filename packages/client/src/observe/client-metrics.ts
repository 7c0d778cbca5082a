/**
 * The numbers of a client, for whatever collects them. `remora/metrics` has adapters.
 *
 * CM1. An error of the collector changes nothing about a request or a lock: it is logged once, and the number is
 *      missing.
 * CM2. Labels have few values: kinds of requests, error codes, modes. Names of keys and locks are not among them.
 */
import type { Logger } from '@remora/base';

export type MetricLabels = Readonly<Record<string, string>>;

/** What collects the numbers of a client. */
export interface ClientMetrics {
  /** Adds one to a counter. */
  count(name: CounterName, labels: MetricLabels): void;
  /** Adds a time, in seconds, to a histogram. */
  observe(name: HistogramName, seconds: number, labels: MetricLabels): void;
}

interface MetricInfo {
  readonly kind: 'counter' | 'histogram';
  readonly help: string;
  readonly labels: readonly string[];
}

/** Every metric of a client. Counters end in `_total`, times in `_seconds`. */
export const CLIENT_METRICS = {
  remora_client_requests_total: {
    kind: 'counter',
    help: 'Requests that have ended, by kind and by error code (OK: none). A waiting acquire may take several.',
    labels: ['kind', 'code'],
  },
  remora_client_request_seconds: {
    kind: 'histogram',
    help: 'The time from a request until its end, retries included, without waits in queues of locks.',
    labels: ['kind'],
  },
  remora_client_request_retries_total: {
    kind: 'counter',
    help: 'Requests that were sent more than once.',
    labels: ['kind'],
  },
  remora_client_lock_wait_seconds: {
    kind: 'histogram',
    help: 'The time from an acquire until the grant, or until it was given up (code: the error, OK: granted).',
    labels: ['mode', 'code'],
  },
  remora_client_lock_hold_seconds: {
    kind: 'histogram',
    help: 'The time from a grant until the release, or the loss (end: released or lost).',
    labels: ['mode', 'end'],
  },
  remora_client_session_events_total: {
    kind: 'counter',
    help: 'Sessions that were suspended, resumed or lost.',
    labels: ['event'],
  },
} as const satisfies Record<string, MetricInfo>;

export type MetricName = keyof typeof CLIENT_METRICS;
type NameOf<Kind extends MetricInfo['kind']> = {
  [Name in MetricName]: (typeof CLIENT_METRICS)[Name]['kind'] extends Kind ? Name : never;
}[MetricName];
export type CounterName = NameOf<'counter'>;
export type HistogramName = NameOf<'histogram'>;

/** CM1. */
export function safeMetrics(metrics: ClientMetrics, logger: Logger): ClientMetrics {
  let told = false;
  const safely = (report: () => void): void => {
    try {
      report();
    } catch (error) {
      if (!told) logger.warn({ error: String(error) }, 'the collector of metrics threw an error; numbers are missing');
      told = true;
    }
  };
  return {
    count: (name, labels) => safely(() => metrics.count(name, labels)),
    observe: (name, seconds, labels) => safely(() => metrics.observe(name, seconds, labels)),
  };
}
