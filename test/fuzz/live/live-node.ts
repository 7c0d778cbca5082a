/**
 * A real node in this process, with its ports on loopback: what inputs are sent to over real connections.
 *
 * N1. It is started by the first input that needs it, and serves all that follow: what one leaves behind, the next
 *     finds.
 * N2. After each input it must serve a client as before, and must not have met anything that it calls its own fault.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { logVerbosity, setLogVerbosity } from '@grpc/grpc-js';
import { type Logger, parseOptions, silentLogger } from '@remora/base';
import { connect, type RemoraClient } from 'remora';
import { foundersOf } from '../../../packages/cli/src/node/cluster/cluster-identity.ts';
import type { RunningNode } from '../../../packages/cli/src/node/running-node.ts';
import { startNode } from '../../../packages/cli/src/node/start-node.ts';
import { type NodeOptions, nodeSchema } from '../../../packages/cli/src/node-options.ts';
import { freePorts } from '../../e2e/free-ports.ts';
import { FuzzViolation } from '../target.ts';

const HOST = '127.0.0.1';
/** How long the node may take to answer after an input: on a machine with other work to do, too. */
export const ALIVE_MS = 10_000;
const START_MS = 20_000;
/**
 * A node allocates by itself, and so do clients that connect to it: garbage of some tens of MiB between collections.
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
    this.clusterId = foundersOf(parts.options)?.clusterId ?? '';
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
        clientPort: String(clientPort),
        peerPort: String(peerPort),
        httpPort: String(httpPort),
        healthListen: `${HOST}:${healthPort}`,
      },
    });
    // It writes to standard error what peers do wrong.
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

/** Keeps what a node calls its own fault: errors that carry a cause it did not expect. */
function faultLogger(faults: unknown[]): Logger {
  const logger: Logger = {
    ...silentLogger,
    error: (fields: unknown, message: string) => {
      // What peers do wrong is logged as an error too, for whoever runs the cluster.
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
