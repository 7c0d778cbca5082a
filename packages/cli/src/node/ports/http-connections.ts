import type { Server as HttpServer, IncomingMessage } from 'node:http';
import type { Server, Socket } from 'node:net';
import { addressKey, Crowd, nodeClock, type OutputBudget } from '@remora/base';

export interface ConnectionLimits {
  readonly connectionsMax: number;
  readonly connectionsPerAddressMax: number;
  /**
   * What happens with one connection too many. By default it is closed. `closeQuietest` closes the one that has sent no
   * request for longest instead (crowd.ts CR1). It suits requests that are answered at once: they are served, however
   * many connections others hold open.
   */
  readonly whenFull?: 'closeQuietest';
}

/**
 * Closes connections beyond the limits at once: in total, and of one client (`addressKey`). Node's own limit
 * (`maxConnections`) does not hold for connections that another port has accepted.
 */
export function boundConnections(server: Server, limits: ConnectionLimits): void {
  const { connectionsMax, connectionsPerAddressMax, whenFull } = limits;
  if (whenFull === 'closeQuietest') return closeQuietest(server, limits);
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

interface CrowdMember {
  readonly address: string;
  readonly socket: Socket;
  spokeMs: number;
}

function closeQuietest(server: Server, { connectionsMax, connectionsPerAddressMax }: ConnectionLimits): void {
  const clock = nodeClock();
  const members = new Map<Socket, CrowdMember>();
  const crowd = new Crowd<CrowdMember>({ max: connectionsMax, perAddressMax: connectionsPerAddressMax }, (member) => {
    crowd.remove(member);
    member.socket.destroy();
  });
  server.on('connection', (socket: Socket) => {
    const member = { address: addressKey(socket.remoteAddress), socket, spokeMs: 0 };
    members.set(socket, member);
    socket.once('close', () => {
      members.delete(socket);
      crowd.remove(member);
    });
    crowd.add(member, clock.monotonicMs());
  });
  server.on('request', ({ socket }: IncomingMessage) => {
    const member = members.get(socket);
    if (member !== undefined) crowd.spoke(member, clock.monotonicMs());
  });
}

/** Counts answers that wait for clients that do not read, whatever handler has written them (HTTP server, H5). */
export function boundOutput(server: HttpServer, budget: OutputBudget): void {
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
