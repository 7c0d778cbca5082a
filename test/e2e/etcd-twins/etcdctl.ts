/** etcd's own command, where it is installed, against one server. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { eventually } from '../eventually.ts';

const PROGRAM = 'etcdctl';
const ENDED_WITHIN_MS = 60_000;
/** Of the client library; the command says the same in its own words. */
const LOG_LINES = /^\{"level":.*\n/gm;

/** Says what is missing, and how to install it; undefined if etcdctl is installed. */
export function missingEtcdctl(): string | undefined {
  const { status } = spawnSync(PROGRAM, ['version'], { stdio: 'ignore', env: environment() });
  return status === 0 ? undefined : `${PROGRAM} is not installed; on Debian: apt-get install etcd-client`;
}

export interface Said {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** One run that goes on until it is told to end. */
export class Etcdctl {
  readonly #child: ChildProcess;
  readonly #ended: Promise<number | null>;
  #out = '';
  #err = '';

  constructor(endpoint: string, args: readonly string[], input = '') {
    const child = spawn(PROGRAM, ['--endpoints', endpoint, ...args], { stdio: 'pipe', env: environment() });
    this.#child = child;
    child.stdout.on('data', (chunk: Buffer) => {
      this.#out += chunk.toString();
    });
    child.stderr.on('data', (chunk: Buffer) => {
      this.#err += chunk.toString();
    });
    this.#ended = new Promise((resolve) => child.once('close', resolve));
    // One that reads no input may have ended by then: what it says is what counts.
    child.stdin.on('error', () => {});
    child.stdin.end(input);
  }

  /** Waits for what it is to print. */
  async says(what: RegExp): Promise<void> {
    await eventually(`etcdctl says ${what}`, () => what.test(this.#out), { timeoutMs: ENDED_WITHIN_MS });
  }

  /** Interrupts it, as Ctrl-C does, and waits for its end. */
  interrupt(): Promise<Said> {
    this.#child.kill('SIGINT');
    return this.end();
  }

  /** Waits until it ends by itself; it is killed when that takes too long. */
  async end(withinMs = ENDED_WITHIN_MS): Promise<Said> {
    const late = setTimeout(() => this.#child.kill('SIGKILL'), withinMs);
    const code = await this.#ended;
    clearTimeout(late);
    return { code, out: this.#out, err: this.#err.replaceAll(LOG_LINES, '') };
  }
}

function environment(): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, ETCDCTL_API: '3' };
}
