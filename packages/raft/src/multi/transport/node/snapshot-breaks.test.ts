import { createHash, type Hash } from 'node:crypto';
import { nodeClock, openFramePort, SeededRandom, sleep } from '@remora/base';
import { expect, test } from 'vitest';
import { Counter } from '../../../../test/support/host/host-bed.ts';
import { BreakingProxy } from '../../../../test/support/transport/cutting-proxy.ts';
import { until } from '../../../../test/support/transport/transport-contract.ts';
import type { Entry, LogPosition, SnapshotMeta } from '../../../core/types.ts';
import { MemoryGroupLog } from '../../../testing/memory-group-log.ts';
import { createRaftHost, type NodeRaftHost } from '../../host/host.ts';
import type { GroupId, NodeId, SnapshotReceiver, StateMachine, StateMachineSnapshot } from '../../ports.ts';
import { SNAPSHOT_TRANSFER_DEFAULTS } from '../snapshot-transfer.ts';
import { createSocketTransport, type SocketTransport } from './socket-transport.ts';

const MIB = 1024 * 1024;
const SNAPSHOT_BYTES = 256 * MIB;
const CUTS_AT = [64 * MIB, 128 * MIB, 192 * MIB];
const BULK: GroupId = 2;
const BUSY: GroupId = 3;
const NODES: readonly NodeId[] = [1, 2, 3];

const clock = nodeClock();

/** The bytes of the snapshot, made on the way: nothing holds them. */
function* bulkChunks(): Generator<Buffer> {
  const pattern = new SeededRandom(5).bytes(128 * 1024);
  for (let at = 0; at < SNAPSHOT_BYTES; at += MIB) {
    const chunk = Buffer.alloc(MIB, pattern);
    chunk.writeUInt32BE(at, 0);
    yield chunk;
  }
}

function hashOf(chunks: Iterable<Uint8Array>): string {
  const hash = createHash('sha1');
  for (const chunk of chunks) hash.update(chunk);
  return hash.digest('hex');
}

/** Its state is a position, and a snapshot much larger than that. */
class BulkMachine implements StateMachine {
  applied: LogPosition = { index: 0, term: 0 };
  snapshots = 0;
  installs = 0;
  received: { readonly hash: string; readonly bytes: number } | undefined;

  apply(entries: readonly Entry[]): void {
    const last = entries.at(-1);
    if (last !== undefined) this.applied = { index: last.index, term: last.term };
  }

  roleChanged(): void {}

  snapshot(): StateMachineSnapshot {
    this.snapshots++;
    async function* chunks(): AsyncIterable<Uint8Array> {
      yield* bulkChunks();
    }
    const meta = { ...this.applied, conf: confOf(BULK) };
    return { meta, chunks: chunks(), bytes: SNAPSHOT_BYTES, release: () => undefined };
  }

  install(meta: SnapshotMeta): SnapshotReceiver {
    this.installs++;
    const hash: Hash = createHash('sha1');
    let bytes = 0;
    return {
      chunk: async (chunk) => {
        hash.update(chunk);
        bytes += chunk.length;
      },
      finish: async () => {
        this.received = { hash: hash.digest('hex'), bytes };
        this.applied = { index: meta.index, term: meta.term };
      },
      abort: () => undefined,
    };
  }
}

function confOf(groupId: GroupId) {
  const voters = NODES.map((node) => groupId * 100 + node);
  return { voters, votersOutgoing: [], learners: [], learnersNext: [], autoLeave: false };
}

interface RunningNode {
  readonly host: NodeRaftHost;
  readonly raft: SocketTransport;
  readonly port: number;
  readonly stop: () => Promise<void>;
}

async function startNode(id: NodeId, addressOf: (node: NodeId) => number, fatal: unknown[]): Promise<RunningNode> {
  const random = new SeededRandom(id);
  const raft = createSocketTransport({
    local: { clusterId: 'test', nodeId: id, incarnation: `i${id}` },
    resolveAddress: (node) => `127.0.0.1:${addressOf(node)}`,
    clock,
    random,
    verifyPeer: () => undefined,
  });
  const listening = await openFramePort({ clock, host: '127.0.0.1', port: 0, services: raft.services });
  const host = createRaftHost({
    nodeId: id,
    clock,
    random,
    log: new MemoryGroupLog(),
    transport: raft.transport,
    options: { tailEntries: 0, tailBytes: 0, snapshotBytesPerSecondMax: 0, snapshotBytesPerSecondBusy: 0 },
    onFatal: (error) => fatal.push(error),
  });
  host.start();
  const stop = async () => {
    await host.stop();
    listening.close();
  };
  return { host, raft, port: listening.port, stop };
}

function addGroup(node: RunningNode, id: NodeId, groupId: GroupId, stateMachine: StateMachine): void {
  node.host.createGroup({
    groupId,
    replicaId: groupId * 100 + id,
    applied: { index: 0, term: 0 },
    conf: confOf(groupId),
    stateMachine,
    locate: (replica) => replica % 100,
    firstWaitTicks: 2 + 20 * id, // node 1 leads
  });
}

test('256 MiB over a link that breaks three times arrive whole, once, within the window, while another group writes', {}, async () => {
  const fatal: unknown[] = [];
  const ports = new Map<NodeId, number>();
  const nodes = new Map<NodeId, RunningNode>();
  const bulk = new Map<NodeId, BulkMachine>();
  const counters = new Map<NodeId, Counter>();
  const proxy = new BreakingProxy({ clock, targetPort: () => nodes.get(3)?.port ?? 0, cutAt: CUTS_AT, closedMs: 100 });
  const proxyPort = await proxy.listen();
  for (const id of NODES) {
    const node = await startNode(id, (to) => (to === 3 ? proxyPort : (ports.get(to) ?? 0)), fatal);
    nodes.set(id, node);
    ports.set(id, node.port);
    const counter = new Counter({ applied: { index: 0, term: 0 }, conf: confOf(BUSY), history: [] });
    counters.set(id, counter);
    addGroup(node, id, BUSY, counter);
    bulk.set(id, new BulkMachine());
  }
  const add = (id: NodeId) => {
    const [node, machine] = [nodes.get(id), bulk.get(id)];
    if (node !== undefined && machine !== undefined) addGroup(node, id, BULK, machine);
  };
  const leaderOf = (groupId: GroupId) => NODES.find((id) => nodes.get(id)?.host.group(groupId)?.ready === true);
  try {
    // Nodes 1 and 2 have a history that node 3 can only get as a snapshot.
    add(1);
    add(2);
    await until('both groups have leaders', () => leaderOf(BULK) !== undefined && leaderOf(BUSY) !== undefined);
    const leader = leaderOf(BULK) ?? 0;
    for (let i = 0; i < 20; i++)
      nodes
        .get(leader)
        ?.host.group(BULK)
        ?.propose(Buffer.from(`b${i}`));
    await until('it is applied', () => [1, 2].every((id) => (bulk.get(id)?.applied.index ?? 0) > 20));
    for (const id of [1, 2]) {
      nodes
        .get(id)
        ?.host.group(BULK)
        ?.checkpointed(bulk.get(id)?.applied ?? { index: 0, term: 0 });
    }
    add(3);

    const written: string[] = [];
    let installed = false;
    /** Proposes until it is applied: what a leader that lost its place had not committed is proposed again. */
    const writeOne = async (text: string) => {
      for (;;) {
        const writer = leaderOf(BUSY) ?? 0;
        const result = nodes.get(writer)?.host.group(BUSY)?.propose(Buffer.from(text));
        if (result !== undefined && !('refused' in result)) {
          for (let waited = 0; waited < 200; waited++) {
            if (counters.get(writer)?.history.includes(text)) return;
            await sleep(clock, 5);
          }
        }
        await sleep(clock, 5);
      }
    };
    const write = async () => {
      while (!installed) {
        const text = `w${written.length}`;
        await writeOne(text);
        written.push(text);
      }
    };
    const writing = write();
    await until('the snapshot is installed', () => bulk.get(3)?.received !== undefined, 60_000);
    installed = true;
    await writing;

    expect(bulk.get(3)?.received).toEqual({ hash: hashOf(bulkChunks()), bytes: SNAPSHOT_BYTES });
    expect(proxy.cuts).toBe(3);
    const sender = NODES.find((id) => (bulk.get(id)?.snapshots ?? 0) > 0) ?? 0;
    await until('the sender knows', () => nodes.get(sender)?.host.stats().snapshotsSent === 1);
    expect(bulk.get(sender)?.snapshots).toBe(1);
    expect(bulk.get(3)?.installs).toBe(1);
    expect(nodes.get(sender)?.host.stats()).toMatchObject({
      snapshotsSendFailed: 0,
      snapshotBytesSent: SNAPSHOT_BYTES,
    });
    expect(nodes.get(sender)?.host.stats().snapshotsResumed).toBeGreaterThanOrEqual(3);
    expect(nodes.get(3)?.host.stats().snapshotBytesReceived).toBe(SNAPSHOT_BYTES);

    const { windowChunks, chunkBytes } = SNAPSHOT_TRANSFER_DEFAULTS;
    const sent = nodes.get(sender)?.raft.snapshotTraffic;
    const received = nodes.get(3)?.raft.snapshotTraffic;
    expect(sent?.sendBufferedMost).toBeGreaterThan(chunkBytes);
    expect(sent?.sendBufferedMost).toBeLessThanOrEqual(windowChunks * (chunkBytes + 16));
    expect(received?.receiveBufferedMost).toBeLessThanOrEqual(windowChunks * chunkBytes);
    expect(sent).toMatchObject({ sendBuffered: 0 });
    expect(received).toMatchObject({ receiveBuffered: 0 });

    expect(written.length).toBeGreaterThan(50);
    await until('every write is applied everywhere', () =>
      [...counters.values()].every(({ history }) => written.every((text) => history.includes(text))),
    );
    expect(fatal).toEqual([]);
  } finally {
    await Promise.all([...nodes.values()].map((node) => node.stop()));
    await proxy.close();
  }
});
