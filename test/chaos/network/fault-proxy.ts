/**
 * A proxy in front of a port, for one party that dials it. The links of each direction decide what happens to the
 * bytes.
 *
 * X1. A dialler reaches the target only if the links of both directions are intact, as with a real handshake.
 * X2. When one end is gone, the other end learns it, unless a blocked link is in between: then it learns it later.
 */
import { createServer, connect as dial, type Server, type Socket } from 'node:net';
import type { Link } from './link.ts';
import { Pipe } from './pipe.ts';

const HOST = '127.0.0.1';

export interface FaultProxyOptions {
  readonly targetPort: number;
  /** From the dialler to the target, and back. */
  readonly there: Link;
  readonly back: Link;
}

export class FaultProxy {
  readonly #options: FaultProxyOptions;
  readonly #server: Server;
  /** The open connections, as functions that break them. */
  readonly #connections = new Set<() => void>();
  readonly #forgetLinks: readonly (() => void)[];

  constructor(options: FaultProxyOptions) {
    this.#options = options;
    this.#server = createServer({ allowHalfOpen: true }, (client) => this.#accept(client));
    const { there, back } = options;
    this.#forgetLinks = [there, back].map((link) =>
      link.onChange(() => {
        if (link.refused) this.reset();
      }),
    );
  }

  listen(port: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen({ port, host: HOST, exclusive: true }, resolve);
    });
  }

  /** How many connections are open. */
  get connections(): number {
    return this.#connections.size;
  }

  /** Breaks all connections, and loses everything in transit on them. */
  reset(): void {
    for (const end of [...this.#connections]) end();
  }

  close(): void {
    for (const forget of this.#forgetLinks) forget();
    this.#server.close();
    this.reset();
  }

  #accept(client: Socket): void {
    const { there, back, targetPort } = this.#options;
    client.on('error', () => undefined);
    if (there.refused || back.refused) {
      client.resetAndDestroy();
      return;
    }
    client.pause();
    const end = (): void => {
      this.#connections.delete(end);
      stopWaiting();
      client.resetAndDestroy();
    };
    this.#connections.add(end);
    const join = (): void => {
      if (there.blocked || back.blocked) return; // X1
      stopWaiting();
      this.#connections.delete(end);
      client.off('close', end);
      this.#join(client, dial({ port: targetPort, host: HOST, allowHalfOpen: true }));
    };
    const forget = [there.onChange(join), back.onChange(join)];
    const stopWaiting = (): void => {
      for (const each of forget) each();
    };
    client.once('close', end);
    join();
  }

  #join(client: Socket, target: Socket): void {
    const { there, back } = this.#options;
    const pipes = [
      new Pipe({ source: client, sink: target, link: there }),
      new Pipe({ source: target, sink: client, link: back }),
    ];
    const end = (): void => {
      if (!this.#connections.delete(end)) return;
      for (const pipe of pipes) pipe.close();
      for (const socket of [client, target]) socket.resetAndDestroy();
    };
    this.#connections.add(end);
    for (const [socket, link] of [
      [client, there],
      [target, back],
    ] as const) {
      socket.setNoDelay(true);
      socket.on('error', () => undefined);
      socket.on('close', (broken) => this.#closed({ broken, link, end, other: socket === client ? target : client }));
    }
    client.resume();
  }

  /** X2. A stream that ended normally has already signalled that to the other end. */
  #closed({ broken, link, end, other }: Closed): void {
    if (other.destroyed) return end();
    if (!broken) return;
    if (!link.blocked) return end();
    const forget = link.onChange(() => {
      if (link.blocked) return;
      forget();
      end();
    });
  }
}

interface Closed {
  readonly broken: boolean;
  /** From the closed socket to the other one. */
  readonly link: Link;
  readonly end: () => void;
  readonly other: Socket;
}
