/**
 * Raft nodes as processes of this machine, and loads on them.
 *
 * K1. Nothing outlives the benchmark: nodes end with the channel to their parent, and `Child` kills what is left.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { GroupId } from '@remora/raft';
import { eventually } from '../../test/e2e/eventually.ts';
import { Child } from '../../test/support/child.ts';
import { compiledBench } from '../compiled-bench.ts';
import { measureLoad, type RunResult } from '../measure.ts';
import type { CaseContext } from './case.ts';
import type { CuttingProxy } from './cutting-proxy.ts';
import type { EntryMode, NodeArguments, NodeCommand, NodeStatus, RaftLoadArguments } from './messages.ts';

const LEADERS_TIMEOUT_MS = 60_000;

export interface ClusterOptions {
  /** Distinguishes it from other clusters of the same case. */
  readonly name: string;
  readonly nodeCount?: number;
  readonly groupCount: number;
  readonly log: NodeArguments['log'];
  /** The working tree whose nodes run; this one unless given. */
  readonly root?: string;
  readonly leaders?: NodeArguments['leaders'];
  readonly checkpointMs?: number;
  readonly hostOptions?: NodeArguments['hostOptions'];
  /** Bytes of a snapshot of the first group. */
  readonly snapshotBytes?: number;
  /** What stands between a node and the others; the load goes to the node itself. */
  readonly proxy?: { readonly nodeId: number; readonly proxy: CuttingProxy };
  /** Further flags for the node processes of this cluster, for example `--max-old-space-size=…`. */
  readonly nodeFlags?: readonly string[];
}

export interface LoadOptions {
  readonly inflightPerGroup: number;
  readonly payloadBytes: number;
  readonly entries: EntryMode;
  readonly seconds: number;
  /** An open load of so many operations (messages.ts); a closed one unless given. */
  readonly opsPerSecond?: number;
  /** The groups to load; all unless given. */
  readonly groups?: readonly GroupId[];
}

interface Member {
  readonly args: NodeArguments;
  child: Child;
  port: number;
  /** The last question to it, answered or not. */
  asked: Promise<unknown>;
}

export class RaftCluster {
  readonly #context: CaseContext;
  readonly #options: ClusterOptions;
  readonly #dir: string;
  readonly #members: Member[] = [];
  #proxyPort = 0;

  private constructor(context: CaseContext, options: ClusterOptions) {
    this.#context = context;
    this.#options = options;
    this.#dir = join(context.dir, options.name);
  }

  /** Starts the nodes; resolves when every group has a leader that is ready. */
  static async start(context: CaseContext, options: ClusterOptions): Promise<RaftCluster> {
    const cluster = new RaftCluster(context, options);
    try {
      await cluster.#start();
    } catch (error) {
      await cluster.stop();
      throw error;
    }
    return cluster;
  }

  get nodeIds(): readonly number[] {
    return this.#members.map(({ args }) => args.nodeId);
  }

  /** A node's process: for its CPU time and memory (proc.ts). */
  pid(nodeId: number): number {
    return this.#member(nodeId).child.pid;
  }

  async status(nodeId: number): Promise<NodeStatus> {
    return (await this.#ask(nodeId, { type: 'status' }, 'status')) as unknown as NodeStatus;
  }

  /** The node that leads each group; resolves when there is one for every group. */
  async leaders(): Promise<ReadonlyMap<GroupId, number>> {
    return eventually(
      `all groups of ${this.#options.name} have leaders`,
      async () => {
        const leaders = new Map<GroupId, number>();
        for (const { args, child } of this.#members) {
          if (!child.running) continue;
          for (const groupId of (await this.status(args.nodeId)).leads) leaders.set(groupId, args.nodeId);
        }
        return leaders.size === this.#options.groupCount && leaders;
      },
      { timeoutMs: LEADERS_TIMEOUT_MS, pollMs: 50 },
    );
  }

  /** Puts load on the groups' leaders from a process of its own. */
  async load(load: LoadOptions): Promise<RunResult> {
    const leaders = await this.leaders();
    const groups = load.groups ?? [...leaders.keys()];
    const { inflightPerGroup, payloadBytes, entries, seconds, opsPerSecond = 0 } = load;
    const targets = groups.map((groupId) => ({ groupId, port: this.#member(leaders.get(groupId) ?? 0).port }));
    const args: RaftLoadArguments = { targets, inflightPerGroup, payloadBytes, entries, seconds, opsPerSecond };
    const leading = new Set(targets.map(({ port }) => port));
    const running = this.#members.filter(({ child }) => child.running);
    const servers = running.map(({ child, port }) => ({
      role: leading.has(port) ? ('leader' as const) : ('follower' as const),
      pid: child.pid,
    }));
    return measureLoad(
      this.#spawn('load', { program: 'load-main', root: this.#context.root, flags: [] }, args),
      servers,
    );
  }

  /** Resolves when all nodes have applied the same operations: what was measured has been replicated. */
  async agree(): Promise<void> {
    await eventually(
      `the nodes of ${this.#options.name} agree`,
      async () => {
        const states = await Promise.all(this.nodeIds.map((nodeId) => this.status(nodeId)));
        const [first] = states;
        return states.every((state) => state.operations === first?.operations && state.checksum === first.checksum);
      },
      { timeoutMs: LEADERS_TIMEOUT_MS, pollMs: 50 },
    );
  }

  /** Stops a node as a power cut would, as far as a process can. */
  async kill(nodeId: number): Promise<void> {
    const { child } = this.#member(nodeId);
    child.signal('SIGKILL');
    await child.exit;
  }

  /** Starts a node again with the log that it left. Resolves to the time in milliseconds that reading the log took. */
  async restart(nodeId: number): Promise<number> {
    const member = this.#member(nodeId);
    await member.child.stop();
    member.child = this.#spawnNode({ ...member.args, port: member.port });
    await member.child.message('listening');
    return this.#begin(member);
  }

  async stop(): Promise<void> {
    await Promise.all(this.#members.map(({ child }) => child.stop()));
  }

  // ---------------------------------------------------------------------------------------------- parts

  async #start(): Promise<void> {
    const {
      nodeCount = 3,
      groupCount,
      log,
      leaders = 'one',
      checkpointMs = 1_000,
      hostOptions = {},
      snapshotBytes = 0,
    } = this.#options;
    mkdirSync(this.#dir, { recursive: true });
    for (let nodeId = 1; nodeId <= nodeCount; nodeId++) {
      const dir = this.#dir;
      const args = {
        nodeId,
        nodeCount,
        port: 0,
        groupCount,
        log,
        dir,
        leaders,
        checkpointMs,
        hostOptions,
        snapshotBytes,
      };
      this.#members.push({ args, child: this.#spawnNode(args), port: 0, asked: Promise.resolve() });
    }
    for (const member of this.#members) member.port = Number((await member.child.message('listening')).port);
    const { proxy } = this.#options;
    if (proxy !== undefined) {
      proxy.proxy.targetPort = this.#member(proxy.nodeId).port;
      this.#proxyPort = await proxy.proxy.listen();
    }
    await Promise.all(this.#members.map((member) => this.#begin(member)));
    await this.leaders();
  }

  async #begin({ args }: Member): Promise<number> {
    const { proxy } = this.#options;
    const ports = this.#members.map(({ port, args: { nodeId } }) =>
      nodeId === proxy?.nodeId ? this.#proxyPort : port,
    );
    const { recoveryMs } = await this.#ask(args.nodeId, { type: 'begin', ports }, 'begun');
    return Number(recoveryMs);
  }

  /** One question to a node at a time: `Child.message` has one listener. */
  #ask(nodeId: number, command: NodeCommand, answer: string): Promise<Readonly<Record<string, unknown>>> {
    const member = this.#member(nodeId);
    const asked = member.asked.then(() => {
      member.child.send(command);
      return member.child.message(answer);
    });
    member.asked = asked.catch(() => undefined);
    return asked;
  }

  #spawnNode(args: NodeArguments): Child {
    const { root = this.#context.root, nodeFlags = [] } = this.#options;
    return this.#spawn(`node${args.nodeId}`, { program: 'node-main', root, flags: nodeFlags }, args);
  }

  #spawn(
    who: string,
    { program, root, flags }: { readonly program: string; readonly root: string; readonly flags: readonly string[] },
    args: object,
  ): Child {
    const { profileDir } = this.#context;
    const profile: string[] = [];
    if (profileDir !== undefined) {
      const dir = join(profileDir, `${this.#options.name}-${who}`);
      mkdirSync(dir, { recursive: true });
      profile.push('--cpu-prof', `--cpu-prof-dir=${dir}`);
    }
    const file = compiledBench(root, `raft/${program}.js`);
    return new Child({
      command: [process.execPath, ...profile, ...flags, file, JSON.stringify(args)],
      cwd: this.#dir,
      logPath: join(this.#dir, `${who}.log`),
    });
  }

  #member(nodeId: number): Member {
    const member = this.#members.find(({ args }) => args.nodeId === nodeId);
    if (member === undefined) throw new Error(`there is no node ${nodeId}`);
    return member;
  }
}
