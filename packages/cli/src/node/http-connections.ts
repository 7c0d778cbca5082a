import type { Server } from 'node:http';
import { isIPv6, type Socket } from 'node:net';

export interface ConnectionLimits {
  readonly connectionsMax: number;
  readonly connectionsPerAddressMax: number;
}

/** Closes connections beyond the limits at once: in total, and of one client (`clientOf`). */
export function boundConnections(server: Server, { connectionsMax, connectionsPerAddressMax }: ConnectionLimits): void {
  const counts = new Map<string, number>(); // As many entries as connections, at most.
  server.maxConnections = connectionsMax;
  server.on('connection', (socket: Socket) => {
    const client = clientOf(socket.remoteAddress ?? '');
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

/** An IPv4 address, also one that is written as IPv6; of other IPv6 addresses the first 64 bits, the least that a site has. */
export function clientOf(address: string): string {
  const ipv4 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (ipv4 !== undefined || !isIPv6(address)) return ipv4 ?? address;
  const [before = '', after] = (address.toLowerCase().split('%', 1)[0] ?? '').split('::');
  const head = before === '' ? [] : before.split(':');
  const tail = after === undefined || after === '' ? [] : after.split(':');
  const groups =
    after === undefined ? head : [...head, ...Array<string>(8 - head.length - tail.length).fill('0'), ...tail];
  return `${groups.slice(0, 4).join(':')}::/64`;
}
