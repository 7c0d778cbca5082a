// G1. A command has a guard from before it begins (gate.ts GA1) until none of its processes is left. The guard is a
//     process that reads a pipe whose other end only this process has, and ends the command when that closes. However
//     this process ends, the system closes the pipe.
// G2. Only SIGKILL ends the guard: it is in a session of its own, where no terminal reaches it, and ignores all signals
//     that can be ignored. If it was killed nevertheless, another one is started.
// G3. While it waits the guard is a shell, which is small (guard-script.ts). It starts the program that ends the
//     command only when that is needed. That program ignores signals explicitly too, because Node does not keep the
//     ignored signals of its parent.
import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { type Clock, type CommandIdentity, sleep } from '@remora/base';
import { guardArguments } from './guard-script.ts';

export interface GuardRequest {
  readonly command: CommandIdentity;
  /** The time between SIGTERM and SIGKILL. */
  readonly graceMs: number;
  readonly clock: Clock;
  /** Another guard had to be started, or could not be started yet. */
  onLost(text: string): void;
}

const RESTART_MIN_MS = 50;
const RESTART_MAX_MS = 5_000;

/** In the folder of this compiled file. */
const PROGRAM = fileURLToPath(new URL('./guard-main.js', import.meta.url));

export class Guard {
  readonly #request: GuardRequest;
  #child: ChildProcess;
  #dismissed = false;

  private constructor(request: GuardRequest, child: ChildProcess) {
    this.#request = request;
    this.#child = child;
    this.#watch(child);
  }

  /** Resolves once it guards the command. @throws Error if it cannot be started. */
  static async start(request: GuardRequest): Promise<Guard> {
    return new Guard(request, await startGuard(request));
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** The command is over. */
  dismiss(): void {
    this.#dismissed = true;
    this.#child.stdin?.end('over\n');
  }

  #watch(child: ChildProcess): void {
    const onExit = () => void this.#restart();
    if (child.exitCode === null && child.signalCode === null) child.once('exit', onExit);
    else onExit();
  }

  /** G2. */
  async #restart(): Promise<void> {
    const { clock, onLost } = this.#request;
    for (let pauseMs = RESTART_MIN_MS; !this.#dismissed; pauseMs = Math.min(2 * pauseMs, RESTART_MAX_MS)) {
      try {
        const child = await startGuard(this.#request);
        onLost('the guard process of the command was killed; a new one replaced it');
        this.#child = child;
        if (this.#dismissed) this.dismiss();
        return this.#watch(child);
      } catch (error) {
        onLost(`the guard process of the command was killed and could not be replaced yet: ${String(error)}`);
        await sleep(clock, pauseMs);
      }
    }
  }
}

function startGuard({ command, graceMs }: GuardRequest): Promise<ChildProcess> {
  const program = [process.execPath, PROGRAM, JSON.stringify({ command, graceMs })];
  const child = spawn('/bin/sh', guardArguments(command, program), {
    stdio: ['pipe', 'pipe', 'ignore'],
    detached: true,
    cwd: '/',
    env: { ...process.env, NODE_OPTIONS: undefined },
  });
  child.stdin.on('error', () => {});
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) => reject(new Error(`it ended with ${signal ?? code} before it was ready`)));
    child.stdout.once('data', () => {
      child.off('error', reject);
      child.on('error', () => {});
      resolve(child);
    });
  });
}
