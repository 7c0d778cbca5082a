import { CLOSED_FOR, type PortHeld, UNREAD_CLOSED_FOR } from '@remora/base';
import type { MetricsRegistry } from '@remora/base/node';

/** HTTP has no account for unread output. */
type Held = Pick<PortHeld, 'input'> & Partial<PortHeld>;

/** What the connections of the ports hold, before and after their calls; read on request. */
export class PortMetrics {
  readonly #ports = new Map<string, () => Held | undefined>();

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
    const closed = gauge('closed_total', 'Connections closed at a limit since the start, by port and reason.', [
      'port',
      'reason',
    ]);
    metrics.onRender(() => {
      for (const [port, heldOf] of this.#ports) {
        const held = heldOf();
        if (held === undefined) continue;
        const { input, output } = held;
        connections.labels(port).set(input.connections);
        unfinished.labels(port).set(input.unfinishedBytes);
        for (const reason of CLOSED_FOR) closed.labels(port, reason).set(input.closed[reason]);
        if (output === undefined) continue;
        unread.labels(port).set(output.unreadBytes);
        for (const reason of UNREAD_CLOSED_FOR) closed.labels(port, reason).set(output.closed[reason]);
      }
    });
  }

  show(port: 'client' | 'peer' | 'http', held: () => Held | undefined): void {
    this.#ports.set(port, held);
  }
}
