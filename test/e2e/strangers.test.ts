/** Real nodes in this process, and somebody at the address of one that is not there. */
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Logger, nodeClock, nodeRandom, openFramePort, parseOptions, silentLogger } from '@remora/base';
import { createRpcRegistry, createRpcService } from '@remora/protocol';
import { createSocketTransport } from '@remora/raft';
import { afterEach, describe, expect, test } from 'vitest';
import { foundersOf } from '../../packages/cli/src/node/cluster-identity.ts';
import type { RunningNode } from '../../packages/cli/src/node/running-node.ts';
import { startNode } from '../../packages/cli/src/node/start-node.ts';
import { type NodeOptions, nodeSchema } from '../../packages/cli/src/node-options.ts';
import { freePorts } from './free-ports.ts';

const HOST = '127.0.0.1';
const NAMES = ['n1', 'n2', 'n3'];

/** Three nodes were to found a cluster; the tests start some of them. */
class Bed {
  readonly dir: string;
  readonly peerPorts: readonly number[];
  readonly #ports: readonly number[];
  readonly #running = new Set<RunningNode>();
  readonly #closers: (() => void)[] = [];
  /** What nodes said, and what ended them. */
  readonly said: { readonly node: string; readonly fields: Readonly<Record<string, unknown>> }[] = [];
  readonly ended: unknown[] = [];

  constructor(dir: string, ports: readonly number[]) {
    this.dir = dir;
    this.peerPorts = ports.slice(0, 3);
    this.#ports = ports.slice(3);
  }

  static async open(): Promise<Bed> {
    return new Bed(await mkdtemp(join(tmpdir(), 'remora-refusals-')), await freePorts(HOST, 12));
  }

  options(n: number): NodeOptions {
    const flags = {
      name: `n${n}`,
      dataDir: join(this.dir, `n${n}`),
      initialCluster: NAMES.map((name, i) => `${name}=${HOST}:${this.peerPorts[i]}`).join(','),
      peerPort: String(this.peerPorts[n - 1]),
      clientPort: String(this.#ports[n - 1]),
      httpPort: String(this.#ports[n + 2]),
      healthListen: `${HOST}:${this.#ports[n + 5]}`,
    };
    return parseOptions(nodeSchema, { flags });
  }

  async start(n: number): Promise<RunningNode> {
    const warn: Logger['warn'] = (fields: unknown) => {
      if (typeof fields === 'object' && fields !== null) this.said.push({ node: `n${n}`, fields: { ...fields } });
    };
    const logger: Logger = { ...silentLogger, warn, child: () => logger };
    const node = await startNode(this.options(n), new AbortController().signal, logger);
    node.failed.catch((error: unknown) => this.ended.push(error));
    this.#running.add(node);
    return node;
  }

  async stop(node: RunningNode): Promise<void> {
    this.#running.delete(node);
    await node.stop();
  }

  /** Somebody who answers where n2 should be, and reaches nobody itself. */
  async strangerAt2(given: { readonly clusterId?: string; readonly nodeId: number }): Promise<void> {
    const ours = foundersOf(this.options(2))?.clusterId ?? '';
    const self = { clusterId: ours, incarnation: 'a-stranger', ...given };
    const clock = nodeClock();
    const resolveAddress = (): undefined => undefined;
    const verifyPeer = (): undefined => undefined;
    const raft = createSocketTransport({ local: self, clock, random: nodeRandom(), resolveAddress, verifyPeer });
    raft.transport.start({
      onMessages() {},
      onHeartbeat() {},
      onUnreachable() {},
      onSnapshot: () => {
        throw new Error('nobody sends one');
      },
    });
    const rpc = createRpcService({ registry: createRpcRegistry(), clock, identity: () => self });
    const services = [...raft.services, rpc];
    const listening = await openFramePort({ clock, host: HOST, port: this.peerPorts[1] ?? 0, services });
    this.#closers.push(() => {
      rpc.close();
      void raft.transport.stop();
      listening.close();
    });
  }

  /** Whether the masters have told a node of the cluster, which it writes down. */
  isTaken(node: string): boolean {
    return existsSync(join(this.dir, node, 'nodes.json'));
  }

  /** A node says of node 2 that it refuses it; false while it does not. */
  saidBy(node: string, code: string): boolean {
    return this.said.some(({ node: by, fields }) => by === node && fields.peer === 'node 2' && fields.code === code);
  }

  async close(): Promise<void> {
    for (const node of this.#running) await node.stop();
    for (const close of this.#closers) close();
    await rm(this.dir, { recursive: true, force: true });
  }
}

const SLOW = { timeout: 20_000, interval: 50 };

describe('somebody answers at the address of a node that is not there', () => {
  let bed: Bed;
  afterEach(() => bed.close());

  const members = async (): Promise<RunningNode[]> => {
    bed = await Bed.open();
    const nodes = [await bed.start(1), await bed.start(3)];
    for (const name of ['n1', 'n3']) await expect.poll(() => bed.isTaken(name), SLOW).toBe(true);
    return nodes;
  };

  test.each([
    { name: 'of another cluster', who: { clusterId: 'other', nodeId: 2 }, code: 'WRONG_CLUSTER', by: ['n1', 'n3'] },
    { name: 'that claims to be one of them', who: { nodeId: 1 }, code: 'NODE_CONFLICT', by: ['n1'] },
  ])('a node $name ends no member, in this life or the next', async ({ who, code, by }) => {
    const nodes = await members();
    await bed.strangerAt2(who);
    for (const name of by) await expect.poll(() => bed.saidBy(name, code), SLOW).toBe(true);
    expect(bed.ended).toEqual([]);
    for (const node of nodes) await bed.stop(node);
    bed.said.length = 0;
    await bed.start(1);
    await expect.poll(() => bed.saidBy('n1', code), SLOW).toBe(true);
    expect(bed.ended).toEqual([]);
  });

  test('a node that nobody else has answered ends, and says why', async () => {
    bed = await Bed.open();
    await bed.strangerAt2({ clusterId: 'other', nodeId: 2 });
    await bed.start(1);
    await expect.poll(() => bed.ended, SLOW).toHaveLength(1);
    expect(bed.ended[0]).toMatchObject({ exit: 'dataDir', message: expect.stringContaining('refuses this node') });
  });
});
