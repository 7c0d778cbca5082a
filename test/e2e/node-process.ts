/**
 * One node of a cluster under test: a real process, run from the built program.
 *
 * N1. A node is signalled only by the id of a process that this object started and whose exit was not observed yet.
 * N2. No node outlives the tests: it stops when its channel closes, and on exit of this process it is killed, even
 *     while frozen.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually, FinalError } from './eventually.ts';
import { PROGRAM } from './program.ts';

const PROBE_TIMEOUT_MS = 1_000;
/** Longer than a node's own limit (--shutdown-timeout). */
const STOP_TIMEOUT_MS = 60_000;

export type Signal = 'SIGKILL' | 'SIGTERM' | 'SIGSTOP' | 'SIGCONT' | 'SIGHUP';

export interface Ports {
  readonly client: number;
  readonly peer: number;
  readonly http: number;
  readonly health: number;
}

export interface NodeProcessOptions {
  readonly name: string;
  readonly host: string;
  readonly ports: Ports;
  readonly dataDir: string;
  readonly logPath: string;
  /** Additional flags, without the dashes. */
  readonly flags: Readonly<Record<string, string>>;
  /** Arguments of Node itself, before the program. */
  readonly nodeArguments?: readonly string[];
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

const alive = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of alive) child.kill('SIGKILL');
});

export class NodeProcess {
  readonly name: string;
  readonly dataDir: string;
  readonly logPath: string;
  /** `host:port` for clients. */
  readonly client: string;
  readonly peer: string;
  /** `host:port` of the HTTP endpoint. */
  readonly http: string;
  /** `host:port` of the listener for probes. */
  readonly health: string;
  readonly ports: Ports;
  /** The program that the next start runs. */
  program = PROGRAM;
  readonly #options: NodeProcessOptions;
  #child: ChildProcess | undefined;
  #exit: Promise<Exit> = Promise.resolve({ code: null, signal: null });

  constructor(options: NodeProcessOptions) {
    this.#options = options;
    this.name = options.name;
    this.dataDir = options.dataDir;
    this.logPath = options.logPath;
    this.ports = options.ports;
    this.client = `${options.host}:${options.ports.client}`;
    this.peer = `${options.host}:${options.ports.peer}`;
    this.http = `${options.host}:${options.ports.http}`;
    this.health = `${options.host}:${options.ports.health}`;
  }

  get running(): boolean {
    return this.#child !== undefined;
  }

  get pid(): number {
    if (this.#child?.pid === undefined) throw new Error(`${this.name} does not run`);
    return this.#child.pid;
  }

  /** How the current process ends, or how the last one ended. */
  get exit(): Promise<Exit> {
    return this.#exit;
  }

  /** `flags` are for this start only. */
  start(flags: Readonly<Record<string, string>> = {}): void {
    if (this.#child !== undefined) throw new Error(`${this.name} runs already`);
    const log = openSync(this.logPath, 'a');
    const { nodeArguments = [] } = this.#options;
    const child = spawn(process.execPath, [...nodeArguments, this.program, 'node', ...this.#arguments(flags)], {
      stdio: ['ignore', log, log, 'ipc'],
      env: { PATH: process.env.PATH },
      // Ctrl-C at a terminal reaches only the tests, which end their nodes themselves (N2).
      detached: true,
    });
    closeSync(log);
    this.#child = child;
    alive.add(child);
    this.#exit = new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        alive.delete(child);
        this.#child = undefined;
        resolve({ code, signal });
      });
    });
  }

  /** Synchronous: the process has received the signal when this returns. */
  signal(signal: Signal): void {
    process.kill(this.pid, signal);
  }

  /**
   * Sends the signal and waits for the end. A process that does not stop in time is killed, and its exit shows that.
   */
  async end(signal: 'SIGKILL' | 'SIGTERM' = 'SIGKILL'): Promise<Exit> {
    if (this.#child !== undefined) this.signal(signal);
    const late = setTimeout(() => {
      if (this.running) this.signal('SIGKILL');
    }, STOP_TIMEOUT_MS);
    const exit = await this.#exit;
    clearTimeout(late);
    return exit;
  }

  /**
   * Asks the module that was loaded into the process in addition to the program (`nodeArguments`). Returns its next
   * message.
   */
  ask(question: object): Promise<unknown> {
    const child = this.#child;
    if (child === undefined) return Promise.reject(new Error(`${this.name} does not run`));
    return new Promise((resolve, reject) => {
      const onExit = (): void => reject(new Error(`${this.name} ended instead of answering:\n${this.logTail(10)}`));
      child.once('exit', onExit);
      child.once('message', (answer) => {
        child.off('exit', onExit);
        resolve(answer);
      });
      child.send(question);
    });
  }

  async untilReady(timeoutMs = 60_000): Promise<void> {
    const probe = async (): Promise<boolean> => {
      if (!this.running) throw new FinalError(`${this.name} ended instead of getting ready:\n${this.logTail(10)}`);
      const response = await fetch(`http://${this.health}/ready`, { signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) });
      return isUsable(await response.text());
    };
    await eventually(`${this.name} is ready`, probe, { timeoutMs, pollMs: 50 }).catch((cause: unknown) => {
      throw new Error(`${this.name} did not get ready; the end of its log:\n${this.logTail(10)}`, { cause });
    });
  }

  /** One family of its metrics: label text to value. Empty if it does not answer. */
  async metrics(name: string): Promise<ReadonlyMap<string, number>> {
    const found = new Map<string, number>();
    const text = await fetch(`http://${this.health}/metrics`, { signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) })
      .then((response) => response.text())
      .catch(() => '');
    for (const line of text.split('\n')) {
      const [, family, labels, value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
      if (family === name) found.set(labels ?? '', Number(value));
    }
    return found;
  }

  log(): string {
    return readFileSync(this.logPath, 'utf8');
  }

  logTail(lines: number): string {
    return this.log().trimEnd().split('\n').slice(-lines).join('\n');
  }

  #arguments(flags: Readonly<Record<string, string>>): readonly string[] {
    const { name, dataDir, host, ports } = this.#options;
    const all: Readonly<Record<string, string>> = {
      name,
      'data-dir': dataDir,
      'client-listen': `${host}:${ports.client}`,
      'peer-listen': `${host}:${ports.peer}`,
      'http-listen': `${host}:${ports.http}`,
      'health-listen': `${host}:${ports.health}`,
      ...this.#options.flags,
      ...flags,
    };
    return Object.entries(all).flatMap(([flag, value]) => [`--${flag}`, value]);
  }
}

/** Conditions that keep clients waiting at every node, or mean that the node does not know yet. */
const NOT_YET: ReadonlySet<string> = new Set(['starting', 'stopping', 'notInformed']);

/**
 * The node runs and, as far as it knows, the cluster serves. A draining node also counts. `body`: the answer of
 * `/ready`.
 */
export function isUsable(body: string): boolean {
  const { conditions } = JSON.parse(body) as { conditions: readonly { name: string; severity: string }[] };
  return conditions.every(({ name, severity }) => severity !== 'critical' && !NOT_YET.has(name));
}

export function nodePaths(dir: string, name: string): { readonly dataDir: string; readonly logPath: string } {
  return { dataDir: join(dir, name), logPath: join(dir, `${name}.log`) };
}
