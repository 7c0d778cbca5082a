/** The HTTP ports of a real node, and who keeps others from them. */
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { API_LIMITS } from '../../packages/cli/src/node/ports/http-server.ts';
import { eventually } from './eventually.ts';
import { Cluster } from './harness.ts';
import type { NodeProcess } from './node-process.ts';

let cluster: Cluster;
let node: NodeProcess;

beforeAll(async () => {
  cluster = await Cluster.start({ nodes: 1, flags: { 'http-allowed-hosts': 'Balancer.example' } });
  node = cluster.node(1);
});
afterAll(() => cluster?.stop());

test('no web page takes or frees a lock, by whatever name it reaches the node', async () => {
  const take = (headers: readonly string[]) =>
    exchange(node.ports.http, 'POST /v1/locks/default/paged/acquire', [...headers, 'Content-Type: application/json']);
  const at = `Host: ${node.http}`;
  expect(await take([`Host: evil.example:${node.ports.http}`])).toContain(' 403 ');
  expect(await take([at, 'Sec-Fetch-Site: cross-site'])).toContain(' 403 ');
  expect(await take([at, 'Origin: http://evil.example'])).toContain(' 403 ');
  for (const port of [node.ports.http, node.ports.health]) {
    expect(await exchange(port, 'GET /metrics', ['Host: evil.example'])).toContain(' 403 ');
    expect(await exchange(port, 'GET /metrics', ['Host: balancer.example'])).toContain(' 200 ');
  }
  // None of them was taken.
  expect(await take(['Host: balancer.example:80', 'Sec-Fetch-Site: none'])).toContain(' 200 ');
});

test('no web page reads or writes keys through the client port, which serves HTTP/1.1 as etcd does', async () => {
  const { client } = node.ports;
  const put = (headers: readonly string[]) => exchange(client, 'POST /v3/kv/put', headers, '{"key":"cGFnZWQ="}');
  const at = `Host: 127.0.0.1:${client}`;
  expect(await put([`Host: evil.example:${client}`])).toContain(' 403 ');
  expect(await put([at, 'Sec-Fetch-Site: cross-site'])).toContain(' 403 ');
  expect(await put([at, 'Origin: http://evil.example', 'Content-Type: text/plain'])).toContain(' 403 ');
  expect(await exchange(client, 'GET /metrics', ['Host: evil.example'])).toContain(' 403 ');
  expect(await exchange(client, 'POST /v3/kv/range', [at], '{"key":"cGFnZWQ="}')).not.toContain('"kvs"');
  // The same put by somebody who may.
  expect(await put([at])).toContain(' 200 ');
});

test('however many slow clients hold the HTTP port, probes are answered, and it serves again when they are gone', async () => {
  const flood = new Flood(node.ports.http, ['127.0.0.1', '127.0.0.2'], API_LIMITS.connectionsMax / 2);
  const health = () => fetch(`http://${node.health}/health`);
  try {
    await eventually('nobody else gets a connection', async () => {
      const answer = await exchange(node.ports.http, 'GET /health', [`Host: ${node.http}`]);
      return answer === '';
    });
    expect((await health()).status).toBe(200);
    expect((await fetch(`http://${node.health}/ready`)).status).toBe(200);
    const shown = await (await fetch(`http://${node.health}/metrics`)).text();
    for (const port of ['client', 'peer', 'http'])
      expect(shown).toContain(`remora_port_unfinished_bytes{port="${port}"} `);
  } finally {
    flood.end();
  }
  await eventually('clients are served', async () => (await fetch(`http://${node.http}/health`)).ok);
});

/** Connections that have begun a header and go no further; one that is closed is opened again. */
class Flood {
  readonly #open = new Set<Socket>();
  #ended = false;

  constructor(port: number, addresses: readonly string[], each: number) {
    for (const localAddress of addresses) for (let i = 0; i < each; i++) this.#connect(port, localAddress);
  }

  end(): void {
    this.#ended = true;
    for (const socket of this.#open) socket.destroy();
  }

  #connect(port: number, localAddress: string): void {
    if (this.#ended) return;
    const socket = connect({ port, host: '127.0.0.1', localAddress });
    this.#open.add(socket);
    socket.on('error', () => {});
    socket.on('connect', () => socket.write('GET /health HTTP/1.1\r\n'));
    socket.on('close', () => {
      this.#open.delete(socket);
      this.#connect(port, localAddress);
    });
  }
}

/** What is answered until the server hangs up; empty when it says nothing. */
function exchange(port: number, line: string, headers: readonly string[], body = ''): Promise<string> {
  return new Promise((resolve) => {
    let answer = '';
    const head = [`${line} HTTP/1.1`, ...headers, `Content-Length: ${body.length}`, 'Connection: close']
      .map((one) => `${one}\r\n`)
      .join('');
    const socket = connect(port, '127.0.0.1', () => socket.write(`${head}\r\n${body}`));
    socket.on('data', (data) => {
      answer += data;
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve(answer));
  });
}
