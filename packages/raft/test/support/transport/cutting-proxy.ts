import { createServer, connect as dial, type Server, type Socket } from 'node:net';
import type { Clock } from '@remora/base';

/**
 * A TCP proxy for tests, which cuts all its connections each time that the bytes towards its target pass the next of
 * `cutAt`, and lets nobody in for a while after.
 */
export class BreakingProxy {
  readonly #clock: Clock;
  readonly #targetPort: () => number;
  readonly #cutAt: number[];
  readonly #closedMs: number;
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;
  #bytes = 0;
  #cuts = 0;
  #closed = false;

  constructor(given: {
    readonly clock: Clock;
    readonly targetPort: () => number;
    readonly cutAt: readonly number[];
    readonly closedMs: number;
  }) {
    this.#clock = given.clock;
    this.#targetPort = given.targetPort;
    this.#cutAt = [...given.cutAt];
    this.#closedMs = given.closedMs;
    this.#server = createServer((client) => this.#connected(client));
  }

  get cuts(): number {
    return this.#cuts;
  }

  /** Resolves with the proxy's port. */
  listen(): Promise<number> {
    return new Promise((resolve) => {
      this.#server.listen(0, '127.0.0.1', () => {
        const address = this.#server.address();
        resolve(typeof address === 'object' && address !== null ? address.port : 0);
      });
    });
  }

  close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
    });
  }

  #connected(client: Socket): void {
    if (this.#closed) {
      client.destroy();
      return;
    }
    const target = dial(this.#targetPort(), '127.0.0.1');
    for (const [socket, other] of [
      [client, target],
      [target, client],
    ] as const) {
      this.#sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        this.#sockets.delete(socket);
        other.destroy();
      });
      socket.pipe(other);
    }
    client.on('data', (bytes) => this.#passed(bytes.length));
  }

  #passed(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes < (this.#cutAt[0] ?? Number.POSITIVE_INFINITY)) return;
    this.#cutAt.shift();
    this.#cuts++;
    this.#closed = true;
    this.#clock.setTimer(this.#closedMs, () => {
      this.#closed = false;
    });
    for (const socket of this.#sockets) socket.destroy();
  }
}
