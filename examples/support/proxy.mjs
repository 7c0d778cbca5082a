// A TCP proxy in front of a server, for what networks do: it counts bytes, and can lose all that comes from the server.
import { connect, createServer } from 'node:net';
import { HOST } from './processes.mjs';

export async function startProxy(stage, targetPort) {
  const proxy = new TcpProxy(targetPort);
  stage.atEnd(() => proxy.close());
  await proxy.listen();
  return proxy;
}

class TcpProxy {
  /** In both directions, so far. */
  bytes = 0;
  port = 0;
  #muted = false;
  #targetPort;
  #server;
  #pairs = new Set();

  constructor(targetPort) {
    this.#targetPort = targetPort;
    this.#server = createServer((client) => this.#join(client));
  }

  get address() {
    return `${HOST}:${this.port}`;
  }

  listen() {
    return new Promise((done) => {
      this.#server.listen(0, HOST, () => {
        this.port = this.#server.address().port;
        done();
      });
    });
  }

  /** From now on what the server says does not arrive; what it is told still does. */
  mute() {
    this.#muted = true;
  }

  /** Breaks all connections. Those that are made afterwards work. */
  sever() {
    for (const pair of this.#pairs) for (const socket of pair) socket.destroy();
    this.#pairs.clear();
    this.#muted = false;
  }

  async close() {
    this.sever();
    this.#server.close();
  }

  #join(client) {
    const server = connect(this.#targetPort, HOST);
    const pair = [client, server];
    this.#pairs.add(pair);
    client.on('data', (bytes) => this.#pass(bytes, server));
    server.on('data', (bytes) => {
      if (!this.#muted) this.#pass(bytes, client);
    });
    for (const [socket, other] of [pair, [...pair].reverse()]) {
      socket.setNoDelay(true);
      socket.on('error', () => {});
      socket.on('close', () => {
        other.destroy();
        this.#pairs.delete(pair);
      });
    }
  }

  #pass(bytes, to) {
    this.bytes += bytes.length;
    to.write(bytes);
  }
}
