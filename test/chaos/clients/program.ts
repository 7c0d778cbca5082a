/**
 * A process of the run's own: a client, or the judge.
 *
 * G1. None outlives the run: each ends when its channel closes, and on exit of this process it is killed, frozen or
 *     not.
 * G2. Ctrl-C at a terminal does not reach it: the run decides what ends when.
 * G3. It has ended when its exit is known and its last message was taken.
 */
import { type ChildProcess, type ForkOptions, fork } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';

export interface ProgramOptions<In> {
  /** A JavaScript file. */
  readonly file: string;
  readonly argument: object;
  readonly logPath: string;
  onMessage(message: In): void;
}

const alive = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of alive) child.kill('SIGKILL');
});

export class Program<In, Out extends object> {
  readonly #child: ChildProcess;
  readonly #logPath: string;
  /** Resolves to how it ended. */
  readonly ended: Promise<string>;
  #running = true;

  constructor({ file, argument, logPath, onMessage }: ProgramOptions<In>) {
    const log = openSync(logPath, 'a');
    // The compiled program, whatever this process was started with.
    const options: ForkOptions = { stdio: ['ignore', log, log, 'ipc'], execArgv: [], detached: true };
    const child = fork(file, [JSON.stringify(argument)], options);
    closeSync(log);
    this.#child = child;
    this.#logPath = logPath;
    alive.add(child);
    child.on('message', (message) => onMessage(message as In));
    const exited = new Promise<string>((resolve) => {
      child.once('exit', (code, signal) => resolve(signal ?? `code ${code}`));
      child.once('error', (error) => resolve(error.message));
    });
    const disconnected = new Promise<void>((resolve) => child.once('disconnect', resolve));
    this.ended = Promise.all([exited, disconnected]).then(([how]) => {
      alive.delete(child);
      this.#running = false;
      return how;
    });
  }

  get running(): boolean {
    return this.#running;
  }

  send(message: Out): void {
    // One that is just ending hears nothing any more; `ended` tells.
    if (this.#child.connected) this.#child.send(message, () => undefined);
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** What it said on its way to its end. */
  lastWords(): string {
    return readFileSync(this.#logPath, 'utf8').trimEnd().split('\n').slice(-12).join('\n');
  }
}
