// V1. One supervisor per data directory, by the directory's lock.
// V2. Every problem that can be detected before a process is started is reported before one is.
// V3. However it ends, no child is left: on a stop the children are asked to end, awaited and, past the deadline,
//     killed.
import { join, resolve } from 'node:path';
import { formatDurationMs, type Random } from '@remora/base';
import { CommandError } from '../exit-codes.ts';
import { localPorts } from '../local-ports.ts';
import { type DirLock, lockDirectory } from '../node/files/dir-lock.ts';
import { makeDirectory } from '../node/files/make-directory.ts';
import type { Readiness } from '../node/health.ts';
import { type DevCertificates, devCertificates } from './certificates.ts';
import { type ChildEvent, ChildNode, logTail } from './child-node.ts';
import { firstTakenPort } from './ports.ts';
import { type DevSettings, loadDevSettings } from './settings.ts';

const HOST = '127.0.0.1';
const POLL_MS = 50;
const PROBE_TIMEOUT_MS = 2000;
const STOP_GRACE_MS = 12_000;

export interface DevClusterOptions {
  readonly dataDir: string;
  /** Undefined: as many as last time, or three. */
  readonly nodes: number | undefined;
  readonly basePort: number;
  readonly readyTimeoutMs: number;
  /** Nodes and clients use TLS, with certificates that the cluster makes for itself. */
  readonly tls: boolean;
  /** The program and arguments that run a node; the node's own flags follow. */
  readonly nodeProgram: readonly [string, ...string[]];
  readonly random: Random;
  /** One line of progress. */
  say(line: string): void;
}

export interface DevNode {
  readonly name: string;
  readonly client: string;
  readonly http: string;
  readonly health: string;
  readonly child: ChildNode;
}

/** A cluster of real processes on this machine. */
export class DevCluster {
  readonly nodes: readonly DevNode[];
  /** Absent without TLS. */
  readonly certificates: DevCertificates | undefined;
  readonly #options: DevClusterOptions;
  readonly #lock: DirLock;
  #onFatal: (error: CommandError) => void = () => {};
  #ready = false;

  private constructor(
    options: DevClusterOptions,
    lock: DirLock,
    settings: DevSettings,
    certificates: DevCertificates | undefined,
  ) {
    this.#options = options;
    this.certificates = certificates;
    this.#lock = lock;
    this.nodes = this.#describe(settings);
  }

  /** Locks the directory, checks ports and settings; starts nothing yet (V1, V2). */
  static async open(options: DevClusterOptions): Promise<DevCluster> {
    const dir = resolve(options.dataDir);
    const lock = await lockDirectory(dir);
    try {
      const settings = await loadDevSettings(dir, options.nodes, options.random);
      await checkPorts(options.basePort, settings.nodes);
      for (let n = 1; n <= settings.nodes; n++) await makeDirectory(join(dir, `n${n}`));
      const names = Array.from({ length: settings.nodes }, (_, i) => `n${i + 1}`);
      const certificates = options.tls ? await devCertificates(join(dir, 'certs'), names, Date.now()) : undefined;
      return new DevCluster({ ...options, dataDir: dir }, lock, settings, certificates);
    } catch (error) {
      await lock.release();
      throw error;
    }
  }

  get endpoints(): readonly string[] {
    return this.nodes.map(({ client }) => client);
  }

  /**
   * Starts all nodes and resolves once each of them is ready.
   * @throws {CommandError} if a node gives up or the cluster is not ready in time.
   */
  async start(signal: AbortSignal): Promise<void> {
    const begun = performance.now();
    const fatal = new Promise<never>((_, reject) => {
      this.#onFatal = reject;
    });
    for (const { name, child, client } of this.nodes) {
      this.#options.say(`starting ${name} on ${client} ...`);
      child.start();
    }
    const deadline = begun + this.#options.readyTimeoutMs;
    const all = this.nodes.map(async (node) => {
      if (!(await this.#untilReady(node, deadline, signal))) return;
      this.#options.say(`${node.name} ready`);
    });
    await Promise.race([Promise.all(all), fatal]);
    if (signal.aborted) return;
    this.#ready = true;
    this.#options.say(`cluster ready in ${((performance.now() - begun) / 1000).toFixed(1)} s`);
  }

  /** Stops every node (V3) and releases the directory. */
  async stop(): Promise<void> {
    const stops = this.nodes.map(async ({ name, child }) => {
      if (!(await child.stop(STOP_GRACE_MS)))
        this.#options.say(`${name} did not stop in time and was killed with SIGKILL`);
    });
    await Promise.all(stops);
    await this.#lock.release();
  }

  #describe({ nodes, clusterToken }: DevSettings): readonly DevNode[] {
    const { basePort, dataDir, nodeProgram } = this.#options;
    const numbers = Array.from({ length: nodes }, (_, i) => i + 1);
    const members = numbers.map((n) => `n${n}=${HOST}:${localPorts(basePort, n).peer}`).join(',');
    return numbers.map((n) => {
      const name = `n${n}`;
      const ports = localPorts(basePort, n);
      const at = (port: number): string => `${HOST}:${port}`;
      const flags = {
        name,
        'data-dir': join(dataDir, name),
        'client-listen': at(ports.client),
        'peer-listen': at(ports.peer),
        'http-listen': at(ports.http),
        'health-listen': at(ports.health),
        'initial-cluster': members,
        'cluster-token': clusterToken,
        ...this.certificates?.flagsOf(name),
      };
      const [program, ...args] = nodeProgram;
      const child = new ChildNode({
        name,
        command: [program, ...args, ...Object.entries(flags).flatMap(([flag, value]) => [`--${flag}`, String(value)])],
        logPath: join(dataDir, `${name}.log`),
        onEvent: (event) => this.#childEvent(name, event),
      });
      return { name, client: at(ports.client), http: at(ports.http), health: at(ports.health), child };
    });
  }

  #childEvent(name: string, event: ChildEvent): void {
    const { say } = this.#options;
    const node = this.nodes.find((candidate) => candidate.name === name);
    if (node === undefined) return;
    if (event.type === 'restarting') {
      return say(`${name} died (${event.how}); restarting it in ${formatDurationMs(event.delayMs)}`);
    }
    const message = `${name} ended (${event.how}) and is not restarted:\n${indented(logTail(node.child.logPath, 5))}`;
    const error = new CommandError('failed', `${message}\n  its log: ${node.child.logPath}`);
    // While starting, one node that cannot start ends the attempt; later the others continue without it.
    if (!this.#ready) this.#onFatal(error);
    else say(error.message);
  }

  /** Whether the node became ready; false if the signal came first. */
  async #untilReady(node: DevNode, deadline: number, signal: AbortSignal): Promise<boolean> {
    let reasons = 'it does not answer';
    while (!signal.aborted) {
      const answer = await probe(node.health);
      if (answer === 'ready') return true;
      if (answer !== undefined) reasons = answer;
      if (performance.now() > deadline) throw this.#notReady(node, reasons);
      await new Promise((next) => setTimeout(next, POLL_MS));
    }
    return false;
  }

  #notReady({ name, child }: DevNode, reasons: string): CommandError {
    const waited = formatDurationMs(this.#options.readyTimeoutMs);
    const tail = indented(logTail(child.logPath, 5));
    return new CommandError(
      'failed',
      `${name} was not ready after ${waited}: ${reasons}\n${tail}\n  its log: ${child.logPath}`,
    );
  }
}

async function checkPorts(basePort: number, nodes: number): Promise<void> {
  const ports = Array.from({ length: nodes }, (_, i) => Object.values(localPorts(basePort, i + 1))).flat();
  const taken = ports.some((port) => port > 65_535) ? 65_536 : await firstTakenPort(HOST, ports);
  if (taken === undefined) return;
  const what = taken > 65_535 ? `the ports would exceed 65535` : `port ${taken} on ${HOST} is taken`;
  throw new CommandError('portTaken', `${what}; choose another --base-port (now ${basePort})`);
}

/** Asks a node whether its cluster can be used; returns the reasons if not, undefined if it does not answer. */
async function probe(health: string): Promise<string | undefined> {
  try {
    const response = await fetch(`http://${health}/ready`, { signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) });
    const { reasons = [], conditions = [] } = (await response.json()) as Partial<Readiness>;
    // Unready nodes are not usable, and until the masters have heard from all nodes they report no problems.
    const missing = conditions.filter(({ severity, name }) => severity === 'critical' || name === 'notInformed');
    if (response.ok && missing.length === 0) return 'ready';
    return [...new Set([...reasons, ...missing.map(({ text }) => text)])].join('; ');
  } catch {
    return undefined;
  }
}

function indented(lines: readonly string[]): string {
  return lines.map((line) => `  | ${line}`).join('\n');
}
