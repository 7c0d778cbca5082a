/** The example programs in Python and Go, built and run as docs/how-to/use-from-python-and-go.md says. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { eventually, FinalError } from '../eventually.ts';

const EXAMPLES = fileURLToPath(new URL('../../../examples', import.meta.url));
const PYTHON = '/usr/bin/python3';
const GO = '/usr/bin/go';

/** What is missing for the programs, if anything is. */
export function missingLanguages(): string | undefined {
  const missing = [PYTHON, GO].filter((program) => !existsSync(program));
  if (missing.length === 0) return undefined;
  return `${missing.join(' and ')} not installed; on Debian: apt-get install python3 golang-go`;
}

export const LANGUAGES = ['python', 'go'] as const;
export type Language = (typeof LANGUAGES)[number];

/** The built programs, with all their runs, so that no run outlives its test. */
export class Programs {
  readonly #dir = mkdtempSync(join(tmpdir(), 'remora-languages-'));
  readonly #runs: ProgramRun[] = [];

  build(): void {
    execFileSync(GO, ['build', '-o', join(this.#dir, 'example'), '.'], { cwd: join(EXAMPLES, 'go'), stdio: 'pipe' });
  }

  /** What gofmt would change, and what the Go tools find wrong. */
  goComplaints(): string {
    const options = { cwd: join(EXAMPLES, 'go'), encoding: 'utf8', stdio: 'pipe' } as const;
    execFileSync(GO, ['vet', './...'], options);
    return execFileSync('/usr/bin/gofmt', ['-l', '.'], options);
  }

  /** `gateways`: addresses that the program goes to, in this order. */
  begin(
    language: Language,
    gateways: readonly string[],
    args: readonly string[],
    env: Readonly<Record<string, string>> = {},
  ): ProgramRun {
    const [program = '', ...before] =
      language === 'go' ? [join(this.#dir, 'example')] : [PYTHON, '-B', join(EXAMPLES, 'python/example.py')];
    const child = spawn(program, [...before, ...args], { env: { REMORA_HTTP: gateways.join(','), ...env } });
    const run = new ProgramRun(child, `${language} ${args.join(' ')}`);
    this.#runs.push(run);
    return run;
  }

  remove(): void {
    for (const run of this.#runs) run.kill();
    rmSync(this.#dir, { recursive: true, force: true });
  }
}

export class ProgramRun {
  readonly #child: ChildProcess;
  readonly #name: string;
  #output = '';
  /** Resolves with the exit code. */
  readonly ended: Promise<number | null>;

  constructor(child: ChildProcess, name: string) {
    this.#child = child;
    this.#name = name;
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on('data', (chunk: Buffer) => {
        this.#output += chunk.toString();
      });
    }
    this.ended = new Promise((resolve) => child.once('close', resolve));
  }

  /** What it has written to both streams. */
  get output(): string {
    return this.#output;
  }

  /** Waits until it has written a line that fits, and returns the numbers in it. */
  async until(line: RegExp): Promise<readonly number[]> {
    return eventually(`${this.#name} writes ${line}`, () => {
      const found = line.exec(this.#output);
      if (found !== null) return found.slice(1).map(Number);
      if (this.#child.exitCode === null) return undefined;
      throw new FinalError(`${this.#name} ended without ${line}:\n${this.#output}`);
    });
  }

  /** Runs to its end. @throws Error if it fails. */
  async done(): Promise<string> {
    const code = await this.ended;
    if (code !== 0) throw new Error(`${this.#name} ended with ${code}:\n${this.#output}`);
    return this.#output;
  }

  /** Ends its standard input, which is the sign to release the lock. */
  finish(): void {
    this.#child.stdin?.end();
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#child.kill(signal);
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }
}
