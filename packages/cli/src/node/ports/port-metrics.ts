import { CLOSED_FOR, type PortHeld, UNREAD_CLOSED_FOR } from '@remora/base';
import type { MetricsRegistry } from '@remora/base/node';
import type { ClientServer } from '@remora/gateway';
import { GRPC_LIMIT_TABLE } from '@remora/grpc-server';
import type { NodeTls } from './node-tls.ts';

/** What the connections of the ports hold, before and after their calls; read on request. */
export class PortMetrics {
  readonly #ports = new Map<string, () => PortHeld | undefined>();

  constructor(metrics: MetricsRegistry) {
    const gauge = (name: string, help: string, labels: readonly string[]) =>
      metrics.gauge({ name: `remora_port_${name}`, help, labels });
    const connections = gauge(
      'connections',
      'Open connections that count towards the limits, by port; for http, bodies that are being received.',
      ['port'],
    );
    const unfinished = gauge('unfinished_bytes', 'Bytes of partly received frames (for http, bodies), by port.', [
      'port',
    ]);
    const unread = gauge('unread_bytes', 'Bytes that wait for clients that do not read, by port.', ['port']);
    const closed = metrics.observedCounter({
      name: 'remora_port_closed_total',
      help: 'Connections closed at a limit, by port and reason.',
      labels: ['port', 'reason'],
    });
    metrics.onRender(() => {
      for (const [port, heldOf] of this.#ports) {
        const held = heldOf();
        if (held === undefined) continue;
        const { input, output } = held;
        connections.labels(port).set(input.connections);
        unfinished.labels(port).set(input.unfinishedBytes);
        for (const reason of CLOSED_FOR) closed.labels(port, reason).set(input.closed[reason]);
        unread.labels(port).set(output.unreadBytes);
        for (const reason of UNREAD_CLOSED_FOR) closed.labels(port, reason).set(output.closed[reason]);
      }
    });
  }

  show(port: 'client' | 'peer' | 'http', held: () => PortHeld | undefined): void {
    this.#ports.set(port, held);
  }
}

/** The certificates and handshakes of a node; read when asked for. */
export function tlsMetrics(metrics: MetricsRegistry, tls: NodeTls, wallMs: () => number): void {
  if (!tls.isUsed) return;
  const gauge = (name: string, help: string, label: string) =>
    metrics.gauge({ name: `remora_tls_${name}`, help, labels: [label] });
  const counter = (name: string, help: string) =>
    metrics.observedCounter({ name: `remora_tls_${name}_total`, help, labels: ['port'] });
  const days = gauge('certificate_expiry_days', 'Days until the certificate expires; negative after that.', 'purpose');
  const inProgress = gauge('handshakes', 'Handshakes in progress, by port.', 'port');
  const waiting = gauge('handshakes_waiting', 'Connections that wait for their handshake to begin, by port.', 'port');
  const completed = counter('handshakes', 'Handshakes completed since the start, by port.');
  const failed = counter('handshakes_failed', 'Handshakes that failed since the start, by port.');
  const refused = counter('clients_refused', 'Connections refused by their certificate, by port.');
  metrics.onRender(() => {
    for (const { purpose, expiresMs } of tls.expiries) days.labels(purpose).set((expiresMs - wallMs()) / DAY_MS);
    for (const [port, stats] of tls.handshakes) {
      inProgress.labels(port).set(stats.inProgress);
      waiting.labels(port).set(stats.waiting);
      completed.labels(port).set(stats.completed);
      failed.labels(port).set(stats.failed);
      refused.labels(port).set(stats.refused);
    }
  });
}

const DAY_MS = 86_400_000;

/** What gRPC connections hold, and how often each limit of theirs was reached; read when asked for. */
export function grpcMetrics(metrics: MetricsRegistry, heldNow: () => ClientServer['grpc']): void {
  const gauge = (name: string, help: string, labels: readonly string[] = []) =>
    metrics.gauge({ name: `remora_grpc_${name}`, help, labels });
  const connections = gauge('connections', 'Open gRPC connections.');
  const streams = gauge('streams', 'Calls and streams that are open on them.');
  const unfinished = gauge('unfinished_bytes', 'Bytes of partly received frames and messages of gRPC.');
  const waiting = gauge('waiting_bytes', 'Bytes of answers that wait for the windows of gRPC clients.');
  const limits = metrics.observedCounter({
    name: 'remora_grpc_limits_reached_total',
    help: 'How often each limit of gRPC connections was reached.',
    labels: ['limit'],
  });
  metrics.onRender(() => {
    const held = heldNow();
    connections.set(held.connections);
    streams.set(held.streams);
    unfinished.set(held.unfinishedBytes);
    waiting.set(held.outputBytes);
    for (const limit of GRPC_LIMITS) limits.labels(limit).set(held.refused[limit] ?? 0);
  });
}

const GRPC_LIMITS = Object.keys(GRPC_LIMIT_TABLE) as (keyof typeof GRPC_LIMIT_TABLE)[];
