// C1. A child runs in a process group of its own, so that a Ctrl-C at the terminal reaches the supervisor alone, which
//     then stops the children in order.
// C2. It holds a channel to the supervisor and stops when that closes: no node outlives a killed supervisor.
// C3. A child that dies is restarted, after a pause that doubles with each quick death. A child whose exit code says
//     that a restart is useless stays down.
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, fstatSync, openSync, readSync, renameSync } from 'node:fs';
import { OWN_FILE_MODE } from '@remora/base';
import { mayRestart } from '../exit-codes.ts';

const LOG_BYTES_MAX = 64 * 2 ** 20;
const RESTART_MS_MIN = 500;
const RESTART_MS_MAX = 30_000;
/** A child that ran for this long was healthy: the next pause is the shortest again. */
const STEADY_MS = 60_000;

export type ChildEvent =
  | { readonly type: 'restarting'; readonly how: string; readonly delayMs: number }
  | { readonly type: 'gaveUp'; readonly how: string; readonly code: number | null };

export interface ChildNodeOptions {
  readonly name: string;
  /** Program and arguments. */
  readonly command: readonly [string, ...string[]];
  readonly logPath: string;
  onEvent(event: ChildEvent): void;
}

/** One supervised node process. */
export class ChildNode {
  readonly name: string;
  readonly logPath: string;
  readonly #options: ChildNodeOptions;
  #child: ChildProcess | undefined;
  #exited: Promise<void> = Promise.resolve();
  #restart: NodeJS.Timeout | undefined;
  #delayMs = RESTART_MS_MIN;
  #startedAt = 0;
  #stopping = false;
  #gaveUp = false;

  constructor(options: ChildNodeOptions) {
    this.#options = options;
    this.name = options.name;
    this.logPath = options.logPath;
  }

  get gaveUp(): boolean {
    return this.#gaveUp;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  start(): void {
    const [program, ...args] = this.#options.command;
    const log = openLog(this.logPath);
    const child = spawn(program, args, { stdio: ['ignore', log, log, 'ipc'], detached: true });
    closeSync(log);
    this.#child = child;
    this.#startedAt = performance.now();
    this.#exited = new Promise((resolve) => {
      child.once('error', (error) => {
        resolve();
        this.#ended(`could not be started: ${error.message}`, null);
      });
      child.once('exit', (code, signal) => {
        resolve();
        this.#ended(signal === null ? `exit code ${code}` : signal, code);
      });
    });
  }

  /** Asks the child to stop, and kills it after `graceMs`; resolves to whether it stopped in time. */
  async stop(graceMs: number): Promise<boolean> {
    this.#stopping = true;
    clearTimeout(this.#restart);
    const child = this.#child;
    if (child === undefined || !isRunning(child)) return true;
    let graceful = true;
    child.kill('SIGTERM');
    const deadline = setTimeout(() => {
      graceful = false;
      child.kill('SIGKILL');
    }, graceMs);
    await this.#exited;
    clearTimeout(deadline);
    return graceful;
  }

  #ended(how: string, code: number | null): void {
    if (this.#stopping || this.#gaveUp) return;
    if (!mayRestart(code)) {
      this.#gaveUp = true;
      this.#options.onEvent({ type: 'gaveUp', how, code });
      return;
    }
    if (performance.now() - this.#startedAt >= STEADY_MS) this.#delayMs = RESTART_MS_MIN;
    const delayMs = this.#delayMs;
    this.#delayMs = Math.min(delayMs * 2, RESTART_MS_MAX);
    this.#restart = setTimeout(() => this.start(), delayMs);
    this.#options.onEvent({ type: 'restarting', how, delayMs });
  }
}

function isRunning(child: ChildProcess): boolean {
  return child.pid !== undefined && child.exitCode === null && child.signalCode === null;
}

/** Opens a log for appending; a large one is first renamed to `.1`, replacing the previous one. */
function openLog(path: string): number {
  const log = openSync(path, 'a', OWN_FILE_MODE);
  if (fstatSync(log).size < LOG_BYTES_MAX) return log;
  closeSync(log);
  renameSync(path, `${path}.1`);
  return openSync(path, 'a', OWN_FILE_MODE);
}

/** The last lines of a log, to show why a node did not start. */
export function logTail(path: string, lines: number): readonly string[] {
  const log = openSync(path, 'r');
  try {
    const { size } = fstatSync(log);
    const tail = Buffer.alloc(Math.min(size, 16 * 1024));
    readSync(log, tail, 0, tail.length, size - tail.length);
    return tail.toString('utf8').trimEnd().split('\n').slice(-lines);
  } finally {
    closeSync(log);
  }
}
