import { type MetricDefinition, silentLogger, silentMetrics } from '@remora/base';
import { type MetricsRegistry, SectionMeter } from '@remora/base/node';
import { ManualClock } from '@remora/base/testing';
import { RangeMetrics } from '../../../../dataserver/src/range-metrics.ts';
import { RangeTimes } from '../../../../dataserver/src/range-times.ts';
import { RequestMeter } from '../../../../gateway/src/routing/calls/request-meter.ts';
import { auditMetrics } from '../../../src/node/audit-metrics.ts';
import { authMetrics } from '../../../src/node/auth-metrics.ts';
import { nodeMetrics } from '../../../src/node/node-metrics.ts';
import { grpcMetrics, PortMetrics, tlsMetrics } from '../../../src/node/ports/port-metrics.ts';
import { hostTimes, logSyncTimes } from '../../../src/node/time-metrics.ts';
import { OtlpExporter } from '../../../src/node/tracing/otlp-exporter.ts';
import { code, table } from './table.ts';

interface Declared extends MetricDefinition {
  readonly kind: 'counter' | 'gauge' | 'histogram';
}

/** Every metric that a node declares, besides those of the process. */
function declaredMetrics(): readonly Declared[] {
  const declared: Declared[] = [];
  const metrics: MetricsRegistry = {
    contentType: '',
    render: () => Promise.resolve(''),
    reading: () => undefined,
    onRender() {}, // So nothing is read of what the metrics are about.
    counter: (definition) => record('counter', definition, silentMetrics.counter(definition)),
    observedCounter: (definition) => record('counter', definition, silentMetrics.gauge(definition)),
    clearableGauge: (definition) => record('gauge', definition, { ...silentMetrics.gauge(definition), clear() {} }),
    gauge: (definition) => record('gauge', definition, silentMetrics.gauge(definition)),
    histogram: (definition) => record('histogram', definition, silentMetrics.histogram(definition)),
  };
  function record<M>(kind: Declared['kind'], definition: MetricDefinition, metric: M): M {
    declared.push({ kind, ...definition });
    return metric;
  }
  nodeMetrics(metrics, {} as Parameters<typeof nodeMetrics>[1]);
  authMetrics(metrics, {} as Parameters<typeof authMetrics>[1]);
  auditMetrics(metrics, {} as Parameters<typeof auditMetrics>[1]);
  tlsMetrics(metrics, { isUsed: true } as Parameters<typeof tlsMetrics>[1], () => 0);
  new PortMetrics(metrics);
  grpcMetrics(metrics, () => undefined as never);
  new RangeMetrics(metrics);
  const measured = { metrics, clock: new ManualClock(), logger: silentLogger, slowMs: 0 };
  new RangeTimes(measured);
  new RequestMeter(measured);
  hostTimes(metrics);
  const send = () => Promise.reject(new Error('unused'));
  new OtlpExporter({ ...measured, send }, { endpoint: 'http://collector', resource: {} });
  logSyncTimes(metrics, measured);
  new SectionMeter(metrics, new ManualClock());
  return declared;
}

export function metricsPage(): string {
  const rows = [...declaredMetrics()]
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map(({ name, kind, labels = [], help }) => [code(name), kind, labels.map(code).join(', '), help]);
  return `# Metrics

A node shows its metrics at \`/metrics\`, in Prometheus' format:

\`\`\`sh
curl -s http://127.0.0.1:7483/metrics | grep '^remora_log'
\`\`\`

Counters and times start with the process. Times are in seconds, sizes in bytes. [Monitor a cluster](../how-to/cluster/monitor.md) tells
which to watch. Besides these there are the usual metrics of a Node.js process (\`process_*\`, \`nodejs_*\`).

${table(['Metric', 'Type', 'Labels', 'Meaning'], rows)}
`;
}
