/** The `remora` command as its users run it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PROGRAM } from './program.ts';

/** The state directory that runs share, instead of the user's home. */
const STATE_HOME = mkdtempSync(join(tmpdir(), 'remora-state-'));
process.once('exit', () => rmSync(STATE_HOME, { recursive: true, force: true }));

export interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

export interface RunInput {
  readonly env?: Record<string, string>;
  readonly input?: Buffer;
  /** Its standard input stays open until the test ends it. */
  readonly open?: true;
  /** Runs in a separate session without a terminal, even if the tests have one. */
  readonly noTerminal?: true;
  /** The Node binary that runs the command, instead of the one that runs the tests. */
  readonly node?: string;
  /** In a separate terminal, made by script(1), whose keys are the input. Either the command or a shell runs in it. */
  readonly terminal?: 'itself' | 'shell';
}

/** One run of the command. */
export class Run {
  out = '';
  err = '';
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;

  constructor(endpoints: readonly string[], args: readonly string[], given: RunInput) {
    const own = { PATH: process.env.PATH, XDG_STATE_HOME: STATE_HOME };
    const env = { ...own, REMORA_ENDPOINTS: endpoints.join(','), ...given.env };
    const [program = '', ...argv] = argvOf(args, given);
    const child = spawn(program, argv, { env, stdio: 'pipe', detached: given.noTerminal === true });
    this.child = child;
    child.stdout.on('data', (chunk: Buffer) => {
      this.out += chunk.toString('latin1');
    });
    child.stderr.on('data', (chunk: Buffer) => {
      this.err += chunk.toString('utf8');
    });
    if (given.open !== true) child.stdin.end(given.input);
    this.ended = new Promise((resolve) => {
      child.once('close', (code) => resolve({ code, out: this.out, err: this.err }));
    });
  }

  get alive(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null;
  }
}

function argvOf(args: readonly string[], { terminal, node = process.execPath }: RunInput): readonly string[] {
  if (terminal === undefined) return [node, PROGRAM, ...args];
  const line = terminal === 'shell' ? 'bash --norc --noprofile -i' : commandLine(args);
  return ['script', '--quiet', '--return', '--command', line, '/dev/null'];
}

/** The command as it is typed in a shell. */
export function commandLine(args: readonly string[]): string {
  return [process.execPath, PROGRAM, ...args].map((arg) => `'${arg.replaceAll("'", "'\\''")}'`).join(' ');
}

/** The command against one cluster, with all its runs, so that no run outlives its test. */
export class RemoraCommand {
  readonly #endpoints: () => readonly string[];
  readonly #runs: Run[] = [];

  constructor(endpoints: () => readonly string[]) {
    this.#endpoints = endpoints;
  }

  begin(args: readonly string[], given: RunInput = {}): Run {
    const run = new Run(this.#endpoints(), args, given);
    this.#runs.push(run);
    return run;
  }

  run(...args: readonly string[]): Promise<Ended> {
    return this.begin(args).ended;
  }

  /** Its `--json` output. Throws if the command fails. */
  async json(...args: readonly string[]): Promise<unknown> {
    const { code, out, err } = await this.run(...args, '--json');
    if (code !== 0) throw new Error(`exit code ${code}: ${err}`);
    return JSON.parse(out);
  }

  /** Ends everything that still runs, gracefully if possible. */
  async endAll(): Promise<void> {
    const left = this.#runs.splice(0).filter((run) => run.alive);
    for (const run of left) run.child.kill('SIGTERM');
    const late = setTimeout(() => {
      for (const run of left) run.child.kill('SIGKILL');
    }, 30_000);
    await Promise.all(left.map((run) => run.ended));
    clearTimeout(late);
  }
}
