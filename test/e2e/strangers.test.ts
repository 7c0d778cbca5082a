/**
 * Real nodes in this process, and strangers: at the address of a node that is not there, and at the ports of those that
 * are.
 */
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  dialFrames,
  type Logger,
  nodeClock,
  nodeRandom,
  openFramePort,
  parseOptions,
  ServiceError,
  type StreamEnd,
  silentLogger,
} from '@remora/base';
import {
  type Caller,
  type ClusterView,
  createRpcRegistry,
  createRpcService,
  dialPipe,
  dialRpc,
  FIRST_EPOCH,
  LinkCaller,
  type LinkIdentity,
  pipeView,
  rangeExecute,
} from '@remora/protocol';
import { createSocketTransport } from '@remora/raft';
import { connect } from 'remora';
import { afterEach, describe, expect, test } from 'vitest';
import { plannedFounding } from '../../packages/cli/src/node/cluster/cluster-identity.ts';
import type { RunningNode } from '../../packages/cli/src/node/running-node.ts';
import { startNode } from '../../packages/cli/src/node/start-node.ts';
import { type NodeOptions, nodeSchema } from '../../packages/cli/src/node-options.ts';
import { AdminClient } from '../../packages/client/src/node/admin-client.ts';
import { FRAMES_SERVICE, helloOf } from '../../packages/raft/src/multi/transport/node/handshake.ts';
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
      peerListen: `${HOST}:${this.peerPorts[n - 1]}`,
      clientListen: `${HOST}:${this.#ports[n - 1]}`,
      httpListen: `${HOST}:${this.#ports[n + 2]}`,
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
    const ours = plannedFounding(this.options(2))?.clusterId ?? '';
    const self = { clusterId: ours, incarnation: 'a-stranger', ...given };
    const clock = nodeClock();
    const identify = ({ nodeId }: { readonly nodeId: number }): Caller => ({ kind: 'node', nodeId });
    const resolveAddress = (): undefined => undefined;
    const verifyPeer = (): undefined => undefined;
    const raft = createSocketTransport({ local: self, clock, random: nodeRandom(), resolveAddress, verifyPeer });
    raft.transport.start({
      onMessages() {},
      onHeartbeat() {},
      onUnreachable() {},
      onGone() {},
      onSnapshot: () => {
        throw new Error('nobody sends one');
      },
    });
    const rpc = createRpcService({ registry: createRpcRegistry(), clock, identity: () => self, identify });
    const services = [...raft.services, rpc];
    const listening = await openFramePort({ clock, host: HOST, port: this.peerPorts[1] ?? 0, services });
    this.#closers.push(() => {
      rpc.close();
      void raft.transport.stop();
      listening.close();
    });
  }

  /** What a caller of the peer port of a node hears, if it presents this identity and writes a key. */
  async writeAs(n: number, who: Partial<LinkIdentity>): Promise<ServiceError | undefined> {
    const self = { clusterId: this.clusterId(), nodeId: 0, incarnation: 'a-stranger', ...who };
    const clock = nodeClock();
    const link = dialRpc({ address: `${HOST}:${this.peerPorts[n - 1]}`, nodeId: 0 }, self, clock);
    const caller = new LinkCaller({ link, clock });
    const [key, value] = [Buffer.from('stranger'), Buffer.from('was here')];
    const flags = { lease: 0n, prevKv: false, ignoreValue: false, ignoreLease: false };
    const op = { type: 'put', key, value, ...flags } as const;
    const command = { type: 'kv', op } as const;
    const to = { rangeId: 2, epoch: FIRST_EPOCH, requestId: 'stranger', authRevision: 0, deadlineMs: 1e15 };
    const request = { ...to, body: { kind: 'command', command } } as const;
    const refused = await new Promise<ServiceError | undefined>((resolve) => {
      caller.call(rangeExecute, request, { timeoutMs: 30_000 }, (error) => resolve(error));
    });
    caller.close(new ServiceError('UNAVAILABLE', 'the test is over'));
    return refused;
  }

  /** How a node ends a stream of Raft messages that a caller with this identity begins. */
  raftAs(n: number, who: Partial<LinkIdentity>): Promise<string> {
    const local = { clusterId: this.clusterId(), nodeId: 0, incarnation: 'a-stranger', ...who };
    return new Promise((resolve) => {
      const handlers = {
        onHello: () => resolve('accepted'),
        onFrame() {},
        onDrain() {},
        onEnd: ({ code }: StreamEnd) => resolve(String(code)),
      };
      dialFrames(`${HOST}:${this.peerPorts[n - 1]}`, helloOf(local, FRAMES_SERVICE), { clock: nodeClock() }, handlers);
    });
  }

  /** The cluster as any client sees it by the Pipe. */
  async viewOf(n: number): Promise<ClusterView | undefined> {
    const clock = nodeClock();
    const caller = new LinkCaller({ link: dialPipe(this.client(n), { clock }), clock });
    const view = await new Promise<ClusterView | undefined>((resolve) => {
      caller.call(pipeView, undefined, { timeoutMs: 30_000 }, (_error, reply) => resolve(reply));
    });
    caller.close(new ServiceError('UNAVAILABLE', 'the test is over'));
    return view;
  }

  client(n: number): string {
    return `${HOST}:${this.#ports[n - 1]}`;
  }

  clusterId(): string {
    return plannedFounding(this.options(1))?.clusterId ?? '';
  }

  file(node: string, name: string): string {
    const path = join(this.dir, node, name);
    return existsSync(path) ? readFileSync(path, 'utf8') : '';
  }

  /** What a node answers over HTTP. */
  async http(n: number, path: string): Promise<string> {
    const response = await fetch(`http://${HOST}:${this.#ports[n + 2]}${path}`);
    return response.text();
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

/** What a node keeps of another one. */
interface Kept {
  readonly nodes: readonly { readonly nodeId: number; readonly incarnation: string }[];
}

const SLOW = { timeout: 60_000, interval: 50 };

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

describe('somebody calls the port for nodes', () => {
  let bed: Bed;
  afterEach(() => bed.close());

  /** Waits until a node has written down who all three are. */
  const allKnownTo = async (name: string): Promise<void> => {
    const known = (): readonly number[] => {
      const text = bed.file(name, 'nodes.json');
      return text === '' ? [] : (JSON.parse(text) as Kept).nodes.map(({ nodeId }) => nodeId);
    };
    await expect.poll(known, SLOW).toEqual([1, 2, 3]);
  };

  test('with the id of the cluster and node 0, or that of a node: it writes nothing', async () => {
    bed = await Bed.open();
    for (const n of [1, 2, 3]) await bed.start(n);
    await using client = await connect({ endpoints: [bed.client(1)] });
    await client.kv.put('here', 'I am');
    const answers = [1, 2, 3].map(async (n) => [
      (await bed.writeAs(n, { nodeId: 0 }))?.code,
      (await bed.writeAs(n, { nodeId: (n % 3) + 1 }))?.code,
      (await bed.writeAs(n, { nodeId: 1_001 }))?.code,
    ]);
    for (const codes of await Promise.all(answers)) {
      expect(codes).toEqual(['UNIMPLEMENTED', 'NODE_CONFLICT', 'UNAVAILABLE']);
    }
    expect(await client.kv.get('stranger')).toBeUndefined();
  });

  test('with messages of Raft under the id of a node, or of one that may join: none is taken', async () => {
    bed = await Bed.open();
    for (const n of [1, 2, 3]) await bed.start(n);
    for (const name of NAMES) await allKnownTo(name);
    for (const n of [1, 2, 3]) {
      const codes = [await bed.raftAs(n, { nodeId: (n % 3) + 1 }), await bed.raftAs(n, { nodeId: 1_001 })];
      const ofOthers = await bed.raftAs(n, { nodeId: (n % 3) + 1, clusterId: 'other' });
      expect([...codes, ofOthers]).toEqual(['NODE_CONFLICT', 'UNAVAILABLE', 'WRONG_CLUSTER']);
    }
    expect(bed.ended).toEqual([]);
    await using client = await connect({ endpoints: [bed.client(1)] });
    expect((await client.kv.put('here', 'I am')).revision).toBeGreaterThan(0);
  });

  test('as a founding member that is not there yet: that one joins all the same, and nothing of it is kept', async () => {
    bed = await Bed.open();
    for (const n of [1, 3]) {
      await bed.start(n);
      expect((await bed.writeAs(n, { nodeId: 2 }))?.code).toBe('UNIMPLEMENTED');
    }
    for (const name of ['n1', 'n3']) await expect.poll(() => bed.isTaken(name), SLOW).toBe(true);
    for (const n of [1, 3])
      for (let i = 0; i < 20; i++) await bed.writeAs(n, { nodeId: 2, incarnation: `a-stranger-${i}` });
    await bed.start(2);
    for (const name of NAMES) await allKnownTo(name);
    expect(bed.ended).toEqual([]);
    for (const name of NAMES) {
      expect(bed.file(name, 'nodes.json')).not.toContain('a-stranger');
      expect(bed.file(name, 'peers.json')).toBe('');
    }
    await using client = await connect({ endpoints: [bed.client(2)] });
    expect((await client.kv.put('here', 'I am')).revision).toBeGreaterThan(0);
  });

  test('what nodes present to each other is shown to nobody else', async () => {
    bed = await Bed.open();
    for (const n of [1, 2, 3]) await bed.start(n);
    for (const name of NAMES) await allKnownTo(name);
    const incarnations = NAMES.map((name) => JSON.parse(bed.file(name, 'node.json')).incarnation as string);
    const admin = new AdminClient({ endpoints: [bed.client(1)], timeoutMs: 30_000, connectTimeoutMs: 30_000 });
    const shown = JSON.stringify([
      ...(await Promise.all(['/ready', '/health', '/metrics'].map((path) => bed.http(1, path)))),
      await bed.viewOf(1),
      await admin.nodes(),
      await bed.writeAs(1, { clusterId: 'guessed' }),
      await bed.writeAs(1, { nodeId: 2 }),
      await bed.writeAs(1, { nodeId: 1 }),
    ]);
    admin.close();
    expect(shown).toContain('n2');
    for (const secret of [bed.clusterId(), ...incarnations]) expect(shown).not.toContain(secret);
  });
});
