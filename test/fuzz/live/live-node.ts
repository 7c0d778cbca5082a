/**
 * A real node in this process, with its ports on loopback. Inputs are sent to it over real connections.
 *
 * N1. The first input that needs it starts it, and all later inputs use it: what one input leaves behind affects the
 *     next.
 * N2. After each input it must serve clients as before, and must not have logged an error that it considers its own
 *     fault.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { logVerbosity, setLogVerbosity } from '@grpc/grpc-js';
import { type Logger, parseOptions, silentLogger } from '@remora/base';
import { connect, type RemoraClient } from 'remora';
import { plannedFounding } from '../../../packages/cli/src/node/cluster/cluster-identity.ts';
import type { RunningNode } from '../../../packages/cli/src/node/running-node.ts';
import { startNode } from '../../../packages/cli/src/node/start-node.ts';
import { type NodeOptions, nodeSchema } from '../../../packages/cli/src/node-options.ts';
import { freePorts } from '../../e2e/free-ports.ts';
import { FuzzViolation } from '../target.ts';

const HOST = '127.0.0.1';
/** How long the node may take to answer after an input, even on a busy machine. */
export const ALIVE_MS = 10_000;
const START_MS = 20_000;
/**
 * A node allocates memory by itself, and so do clients that connect to it: some tens of MiB of garbage between
 * collections.
 */
export const LIVE_MEMORY_BASE_BYTES = 128 * 1024 * 1024;

export class LiveNode {
  readonly options: NodeOptions;
  readonly clusterId: string;
  readonly #dir: string;
  readonly #node: RunningNode;
  readonly #client: RemoraClient;
  readonly #faults: unknown[];
  #puts = 0;

  private constructor(parts: {
    readonly options: NodeOptions;
    readonly dir: string;
    readonly node: RunningNode;
    readonly client: RemoraClient;
    readonly faults: unknown[];
  }) {
    this.options = parts.options;
    this.clusterId = plannedFounding(parts.options)?.clusterId ?? '';
    this.#dir = parts.dir;
    this.#node = parts.node;
    this.#client = parts.client;
    this.#faults = parts.faults;
    this.#node.failed.catch((error: unknown) => this.#faults.push(error));
  }

  static async start(): Promise<LiveNode> {
    const dir = await mkdtemp(join(tmpdir(), 'remora-fuzz-'));
    const [clientPort, peerPort, httpPort, healthPort] = await freePorts(HOST, 4);
    const options = parseOptions(nodeSchema, {
      flags: {
        dataDir: dir,
        clientListen: `${HOST}:${clientPort}`,
        peerListen: `${HOST}:${peerPort}`,
        httpListen: `${HOST}:${httpPort}`,
        healthListen: `${HOST}:${healthPort}`,
      },
    });
    // It writes errors of peers to standard error.
    setLogVerbosity(logVerbosity.NONE);
    const faults: unknown[] = [];
    const node = await startNode(options, new AbortController().signal, faultLogger(faults));
    const endpoints = `${HOST}:${clientPort}`;
    const client = await connect({ endpoints, requestTimeout: ALIVE_MS, connectTimeout: START_MS });
    return new LiveNode({ options, dir, node, client, faults });
  }

  /** N2. */
  async check(): Promise<void> {
    const value = String(++this.#puts);
    try {
      await this.#client.kv.put('alive', value);
      const found = await this.#client.kv.get('alive');
      if (found?.value.toString() !== value) throw new FuzzViolation('the node has lost what was put');
    } catch (cause) {
      throw new FuzzViolation(`the node does not serve any more: ${String(cause)}`, { cause });
    }
    const [fault] = this.#faults.splice(0);
    if (fault !== undefined) throw new FuzzViolation(`the node blames itself: ${text(fault)}`);
  }

  async stop(): Promise<void> {
    await this.#client.close();
    await this.#node.stop();
    await rm(this.#dir, { recursive: true, force: true });
  }
}

/** Collects what a node considers its own fault: errors with an unexpected cause. */
function faultLogger(faults: unknown[]): Logger {
  const logger: Logger = {
    ...silentLogger,
    error: (fields: unknown, message: string) => {
      // Mistakes of peers are logged as errors too, for the operators of the cluster.
      if (!OTHERS_FAULTS.has(message)) faults.push({ message, fields });
    },
    child: () => logger,
  };
  return logger;
}

const OTHERS_FAULTS: ReadonlySet<string> = new Set(['a peer sent a malformed frame']);

function text(fault: unknown): string {
  if (fault instanceof Error) return fault.stack ?? fault.message;
  return JSON.stringify(fault, (_name, value) =>
    value instanceof Error ? value.stack : typeof value === 'bigint' ? String(value) : value,
  );
}

let running: Promise<LiveNode> | undefined;

/** N1. */
export function liveNode(): Promise<LiveNode> {
  running ??= LiveNode.start();
  return running;
}

export async function stopLiveNode(): Promise<void> {
  const node = running;
  running = undefined;
  await (await node)?.stop();
}
