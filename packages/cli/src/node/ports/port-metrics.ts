import { CLOSED_FOR, type InputStats } from '@remora/base';
import type { MetricsRegistry } from '@remora/base/node';

/** What the ports for clients and nodes hold of connections that have not said something whole; read when asked for. */
export class PortMetrics {
  readonly #ports = new Map<string, () => InputStats | undefined>();

  constructor(metrics: MetricsRegistry) {
    const gauge = (name: string, help: string, labels: readonly string[]) =>
      metrics.gauge({ name: `remora_port_${name}`, help, labels });
    const connections = gauge('connections', 'Open connections that count for its limits, by port.', ['port']);
    const unfinished = gauge('unfinished_bytes', 'Bytes of frames that have begun and are not whole, by port.', [
      'port',
    ]);
    const closed = gauge('closed_total', 'Connections closed for what they hold since the start, by port and reason.', [
      'port',
      'reason',
    ]);
    metrics.onRender(() => {
      for (const [port, statsOf] of this.#ports) {
        const stats = statsOf();
        if (stats === undefined) continue;
        connections.labels(port).set(stats.connections);
        unfinished.labels(port).set(stats.unfinishedBytes);
        for (const reason of CLOSED_FOR) closed.labels(port, reason).set(stats.closed[reason]);
      }
    });
  }

  show(port: 'client' | 'peer', stats: () => InputStats | undefined): void {
    this.#ports.set(port, stats);
  }
}
