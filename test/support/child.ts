/**
 * Processes that the benchmark starts.
 *
 * C1. A process is signalled only by the id of a child whose exit was not observed yet.
 * C2. No child outlives the benchmark: on its exit they are killed.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';

export interface ChildOptions {
  readonly command: readonly [string, ...string[]];
  readonly cwd: string;
  readonly logPath: string;
  readonly env?: Readonly<Record<string, string>>;
}

const alive = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of alive) child.kill('SIGKILL');
});

export class Child {
  readonly #options: ChildOptions;
  readonly #process: ChildProcess;
  readonly #exit: Promise<string>;
  #running = true;
  /** Messages that were not requested yet. */
  readonly #messages: unknown[] = [];
  #wake: () => void = () => {};

  constructor(options: ChildOptions) {
    const { command, cwd, logPath, env } = options;
    const [program, ...args] = command;
    const log = openSync(logPath, 'a');
    this.#options = options;
    this.#process = spawn(program, args, {
      cwd,
      env: { ...process.env, ...env },
      stdio: ['ignore', log, log, 'ipc'],
    });
    closeSync(log);
    alive.add(this.#process);
    this.#process.on('message', (message) => {
      this.#messages.push(message);
      this.#wake();
    });
    this.#exit = new Promise((resolve) => {
      const over = (how: string): void => {
        alive.delete(this.#process);
        this.#running = false;
        this.#wake();
        resolve(how);
      };
      this.#process.once('exit', (code, signal) => over(signal ?? `exit code ${code}`));
      this.#process.once('error', (error) => over(error.message));
    });
  }

  get pid(): number {
    const { pid } = this.#process;
    if (pid === undefined || !this.#running) throw this.#ended();
    return pid;
  }

  get running(): boolean {
    return this.#running;
  }

  /** How it ended. */
  get exit(): Promise<string> {
    return this.#exit;
  }

  /** The next message of the given type. @throws Error if the process ends instead. */
  async message(type: string): Promise<Readonly<Record<string, unknown>>> {
    for (;;) {
      const at = this.#messages.findIndex((message) => isOfType(message, type));
      const [found] = at < 0 ? [] : this.#messages.splice(at, 1);
      if (found !== undefined) return found as Readonly<Record<string, unknown>>;
      if (!this.#running) throw this.#ended();
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  send(message: object): void {
    if (!this.#running) throw this.#ended();
    this.#process.send(message);
  }

  signal(signal: 'SIGTERM' | 'SIGKILL'): void {
    process.kill(this.pid, signal);
  }

  /** Requests the process's end, and kills it if it does not end in time. */
  async stop(graceMs = 10_000): Promise<void> {
    if (!this.#running) return;
    this.signal('SIGTERM');
    const late = setTimeout(() => {
      if (this.#running) this.signal('SIGKILL');
    }, graceMs);
    await this.#exit;
    clearTimeout(late);
  }

  logTail(lines: number): string {
    return readFileSync(this.#options.logPath, 'utf8').trimEnd().split('\n').slice(-lines).join('\n');
  }

  #ended(): Error {
    return new Error(
      `${this.#options.command.slice(0, 3).join(' ')} has ended; the end of its log:\n${this.logTail(8)}`,
    );
  }
}

function isOfType(message: unknown, type: string): boolean {
  return typeof message === 'object' && message !== null && 'type' in message && message.type === type;
}
