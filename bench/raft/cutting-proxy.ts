import type { AddressInfo } from 'node:net';
import { connect, createServer, type Server, type Socket } from 'node:net';

const CLOSED_MS = 100;

/** Stands before a node's port. Nobody comes through before `open`, nor for a moment after a `cut`. */
export class CuttingProxy {
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;
  /** Set once the node listens. */
  targetPort = 0;
  #closed = true;

  constructor() {
    this.#server = createServer((client) => this.#connected(client));
  }

  listen(): Promise<number> {
    return new Promise((resolve) => {
      this.#server.listen(0, '127.0.0.1', () => resolve((this.#server.address() as AddressInfo).port));
    });
  }

  open(): void {
    this.#closed = false;
  }

  cut(): void {
    this.#closed = true;
    setTimeout(() => {
      this.#closed = false;
    }, CLOSED_MS).unref();
    for (const socket of this.#sockets) socket.destroy();
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #connected(client: Socket): void {
    if (this.#closed) {
      client.destroy();
      return;
    }
    const target = connect(this.targetPort, '127.0.0.1');
    this.#join(client, target);
    this.#join(target, client);
  }

  #join(from: Socket, to: Socket): void {
    this.#sockets.add(from);
    from.setNoDelay(true);
    from.on('error', () => undefined);
    from.on('close', () => {
      this.#sockets.delete(from);
      to.destroy();
    });
    from.pipe(to);
  }
}
