/** Nodes that listen on IPv6 alone. */

import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'remora';
import { expect, test } from 'vitest';
import { describeWith } from '../support/needs.ts';
import { runHere } from './command-line.ts';
import { freePorts } from './free-ports.ts';
import { NodeProcess, nodePaths } from './node-process.ts';

const HOST = '::1';

const missing = await new Promise<string | undefined>((resolve) => {
  const server = createServer();
  server.once('error', (error) => resolve(`this machine has no IPv6 (${error.message})`));
  server.listen({ host: HOST, port: 0 }, () => server.close(() => resolve(undefined)));
});

const LISTENING = 'listening for ';

/** The addresses that a node says it listens on, by what for. */
function listening(log: string): Readonly<Record<string, string>> {
  const lines = log
    .trim()
    .split('\n')
    .map((line): { msg: string; address: string } => JSON.parse(line));
  const said = lines.filter(({ msg }) => msg.startsWith(LISTENING));
  return Object.fromEntries(said.map(({ msg, address }) => [msg.slice(LISTENING.length), address]));
}

describeWith(missing, 'a cluster on IPv6', () => {
  test('is founded, serves, and shows its addresses in brackets', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'remora-ipv6-'));
    const ports = await freePorts(HOST, 12);
    const portsOf = (i: number) => {
      const [client = 0, peer = 0, http = 0, health = 0] = ports.slice(4 * i, 4 * i + 4);
      return { client, peer, http, health };
    };
    const names = ['n1', 'n2', 'n3'];
    const members = names.map((name, i) => `${name}=[${HOST}]:${portsOf(i).peer}`).join(',');
    const nodes = names.map(
      (name, i) =>
        new NodeProcess({
          ...{ name, host: `[${HOST}]`, ports: portsOf(i), ...nodePaths(dir, name) },
          flags: { 'initial-cluster': members },
        }),
    );
    try {
      for (const node of nodes) node.start();
      await Promise.all(nodes.map((node) => node.untilReady()));
      const endpoints = nodes.map(({ client }) => client);
      await using client = await connect({ endpoints });
      await client.kv.put('six', '6');
      expect((await client.kv.get('six'))?.value.toString()).toBe('6');
      const { code, out } = await runHere(endpoints, ['status']);
      expect(code).toBe(0);
      for (const endpoint of endpoints) expect(out).toContain(endpoint);
      for (const node of nodes) {
        const { client, peer, http, health } = node;
        expect(listening(node.log())).toEqual({
          clients: client,
          'other nodes': peer,
          HTTP: http,
          'health and metrics': health,
        });
      }
      const response = await fetch(`http://${nodes[0]?.http}/ready`);
      expect(response.status).toBe(200);
    } finally {
      await Promise.all(nodes.map((node) => node.end()));
      rmSync(dir, { recursive: true, force: true });
    }
  });
});
