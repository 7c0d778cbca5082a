import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { addressKey, type OutputBudget } from '@remora/base';

export interface ConnectionLimits {
  readonly connectionsMax: number;
  readonly connectionsPerAddressMax: number;
}

/**
 * Closes connections beyond the limits at once: in total, and of one client (`addressKey`). Node's own limit
 * (`maxConnections`) does not hold for connections that another port has accepted.
 */
export function boundConnections(server: Server, { connectionsMax, connectionsPerAddressMax }: ConnectionLimits): void {
  const counts = new Map<string, number>(); // At most as many entries as connections.
  let total = 0;
  server.on('connection', (socket: Socket) => {
    const client = addressKey(socket.remoteAddress);
    const count = (counts.get(client) ?? 0) + 1;
    if (total >= connectionsMax || count > connectionsPerAddressMax) {
      socket.destroy();
      return;
    }
    total++;
    counts.set(client, count);
    socket.once('close', () => {
      total--;
      const left = (counts.get(client) ?? 1) - 1;
      if (left === 0) counts.delete(client);
      else counts.set(client, left);
    });
  });
}

/** Counts answers that wait for clients that do not read, whatever handler has written them (HTTP server, H5). */
export function boundOutput(server: Server, budget: OutputBudget): void {
  server.on('request', (_request, response) => {
    const account = budget.open(response.socket?.remoteAddress, {
      pendingBytes: () => response.writableLength,
      close: () => response.socket?.destroy(),
    });
    // Node emits it when the handler has written all of an answer. Streams bound what waits in them by themselves.
    response.once('prefinish', () => account.holds(response.writableLength));
    response.once('close', () => account.end());
  });
}
