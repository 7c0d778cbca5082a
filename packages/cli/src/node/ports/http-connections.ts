import type { Server, Socket } from 'node:net';
import { addressKey } from '@remora/base';

export interface ConnectionLimits {
  readonly connectionsMax: number;
  readonly connectionsPerAddressMax: number;
}

/** Closes connections beyond the limits at once: in total, and of one client (`addressKey`). */
export function boundConnections(server: Server, { connectionsMax, connectionsPerAddressMax }: ConnectionLimits): void {
  const counts = new Map<string, number>(); // At most as many entries as connections.
  server.maxConnections = connectionsMax;
  server.on('connection', (socket: Socket) => {
    const client = addressKey(socket.remoteAddress);
    const count = (counts.get(client) ?? 0) + 1;
    if (count > connectionsPerAddressMax) {
      socket.destroy();
      return;
    }
    counts.set(client, count);
    socket.once('close', () => {
      const left = (counts.get(client) ?? 1) - 1;
      if (left === 0) counts.delete(client);
      else counts.set(client, left);
    });
  });
}
