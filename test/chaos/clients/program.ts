/**
 * A separate process of the run: a client or the judge.
 *
 * G1. No such process outlives the run: it ends when its channel closes, and on exit of this process it is killed, even
 *     while frozen.
 * G2. Ctrl-C at a terminal does not reach it: the run decides the order in which processes end.
 * G3. It has ended once its exit is known and its last message has been received.
 */
import { type ChildProcess, type ForkOptions, fork } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';

export interface ProgramOptions<In> {
  /** A JavaScript file. */
  readonly file: string;
  readonly argument: object;
  readonly logPath: string;
  /** Arguments of Node itself. */
  readonly nodeArguments?: readonly string[];
  onMessage(message: In): void;
}

const alive = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of alive) child.kill('SIGKILL');
});

export class Program<In, Out extends object> {
  readonly #child: ChildProcess;
  readonly #logPath: string;
  /** Resolves to a description of its end. */
  readonly ended: Promise<string>;
  #running = true;

  constructor({ file, argument, logPath, nodeArguments = [], onMessage }: ProgramOptions<In>) {
    const log = openSync(logPath, 'a');
    // The compiled program, independent of the options that this process was started with.
    const options: ForkOptions = { stdio: ['ignore', log, log, 'ipc'], execArgv: [...nodeArguments], detached: true };
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
    // A process that is ending receives nothing any more. `ended` reports it.
    if (this.#child.connected) this.#child.send(message, () => undefined);
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Its last output before it ended. */
  lastWords(): string {
    return readFileSync(this.#logPath, 'utf8').trimEnd().split('\n').slice(-12).join('\n');
  }
}
