/**
 * One node of the Raft benchmark: host, log and transport as in production, groups that count, and a port for the load.
 */
import { join } from 'node:path';
import { type FramePort, nodeClock, nodeDisk, nodeRandom, openFramePort, silentLogger } from '@remora/base';
import {
  createRaftHost,
  createSocketTransport,
  type FrameTraffic,
  type GroupId,
  type GroupLog,
  type GroupOptions,
  type NodeRaftHost,
  openGroupLog,
} from '@remora/raft';
import { MemoryGroupLog } from '@remora/raft/testing';
import { CountingMachine } from './counting-machine.ts';
import { type LoadedGroup, loadService } from './load-server.ts';
import { FIRST_GROUP, type NodeArguments, type NodeStatus } from './messages.ts';

const HOST = '127.0.0.1';
const REPLICAS_PER_GROUP = 100;

export class BenchNode {
  readonly #args: NodeArguments;
  readonly #groups = new Map<GroupId, LoadedGroup>();
  #port: FramePort | undefined;
  readonly #onFatal: (error: unknown) => void;
  readonly #clock = nodeClock();
  #ports: readonly number[] = [];
  #host: NodeRaftHost | undefined;
  #log: GroupLog | undefined;
  #frames: Readonly<FrameTraffic> | undefined;

  constructor(args: NodeArguments, onFatal: (error: unknown) => void) {
    this.#args = args;
    this.#onFatal = onFatal;
  }

  /** Reads the log, begins to listen; resolves to the port, and the time that the log took. */
  async open(): Promise<{ readonly port: number; readonly recoveryMs: number }> {
    const { nodeId, port } = this.#args;
    const begunMs = performance.now();
    const log = await this.#openLog();
    const recoveryMs = performance.now() - begunMs;
    const random = nodeRandom();
    const { transport, services, frameTraffic } = createSocketTransport({
      local: { clusterId: 'bench', nodeId, incarnation: `node ${nodeId}` },
      resolveAddress: (node) => `${HOST}:${this.#ports[node - 1]}`,
      clock: this.#clock,
      random,
      verifyPeer: () => undefined,
    });
    this.#log = log;
    this.#frames = frameTraffic;
    this.#host = createRaftHost({
      nodeId,
      clock: this.#clock,
      random,
      log,
      transport,
      options: this.#args.hostOptions,
      onFatal: this.#onFatal,
    });
    this.#port = await openFramePort({
      clock: this.#clock,
      ...{ host: HOST, port, services: [...services, loadService(this.#groups)] },
    });
    return { port: this.#port.port, recoveryMs };
  }

  /** All nodes listen: makes the groups. */
  begin(ports: readonly number[]): void {
    const host = this.#host;
    if (host === undefined) throw new Error('the node is not open');
    this.#ports = ports;
    host.start();
    const recovered = this.#log?.recovered();
    for (let i = 0; i < this.#args.groupCount; i++) this.#createGroup(host, FIRST_GROUP + i, recovered);
    this.#log?.forgetRecovered();
    if (this.#args.checkpointMs > 0) setInterval(() => this.#checkpoint(), this.#args.checkpointMs).unref();
  }

  status(): NodeStatus {
    const groups = [...this.#groups.values()];
    const memory = process.memoryUsage();
    const [host, log] = [this.#host, this.#log];
    if (host === undefined || log === undefined) throw new Error('the node is not open');
    return {
      leads: groups.filter(({ group }) => group.ready).map(({ group }) => group.groupId),
      operations: groups.reduce((sum, { machine }) => sum + machine.operations, 0),
      checksum: groups.reduce((sum, { machine }) => (sum + machine.sum) >>> 0, 0),
      host: host.stats(),
      log: log.stats(),
      frames: this.#frames,
      sample: groups[0]?.group.status(),
      rssBytes: memory.rss,
      heapBytes: memory.heapUsed,
    };
  }

  async stop(): Promise<void> {
    this.#port?.close();
    await this.#host?.stop();
    await this.#log?.close();
  }

  // ---------------------------------------------------------------------------------------------- parts

  async #openLog(): Promise<GroupLog> {
    if (this.#args.log === 'memory') return new MemoryGroupLog();
    return openGroupLog({
      disk: nodeDisk(join(this.#args.dir, `node${this.#args.nodeId}`)),
      dir: 'log',
      logger: silentLogger,
      onFailure: (error) => (this.#host === undefined ? this.#onFatal(error) : this.#host.logFailed(error)),
    });
  }

  #createGroup(host: NodeRaftHost, groupId: GroupId, recovered: ReturnType<GroupLog['recovered']> | undefined): void {
    const { nodeId, nodeCount, leaders } = this.#args;
    const voters = Array.from({ length: nodeCount }, (_, i) => replicaOf(groupId, i + 1));
    const conf = { voters, votersOutgoing: [], learners: [], learnersNext: [], autoLeave: false };
    const machine = new CountingMachine(conf, groupId === FIRST_GROUP ? this.#args.snapshotBytes : 0);
    const first = leaders === 'one' ? 1 : 1 + (groupId % nodeCount);
    const found = recovered?.get(groupId);
    const options: GroupOptions = {
      groupId,
      replicaId: replicaOf(groupId, nodeId),
      applied: machine.applied,
      conf,
      // The others wait long enough for the first to be heard on a busy machine.
      firstWaitTicks: nodeId === first ? 4 : 200 + 20 * nodeId,
      stateMachine: machine,
      locate: (replica) => replica % REPLICAS_PER_GROUP,
      ...(found !== undefined && { recovered: found }),
    };
    this.#groups.set(groupId, { group: host.createGroup(options), machine });
  }

  #checkpoint(): void {
    for (const { group, machine } of this.#groups.values()) group.checkpointed(machine.applied);
  }
}

function replicaOf(groupId: GroupId, node: number): number {
  return groupId * REPLICAS_PER_GROUP + node;
}
