import { CLOSED_FOR, type PortHeld, UNREAD_CLOSED_FOR } from '@remora/base';
import type { MetricsRegistry } from '@remora/base/node';
import type { ClientServer } from '@remora/gateway';
import { GRPC_LIMIT_TABLE } from '@remora/grpc-server';

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
