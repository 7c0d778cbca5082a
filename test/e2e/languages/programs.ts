/** The example programs in Python and Go, built and run as docs/how-to/locks/use-from-python-and-go.md says. */
import { type ChildProcess, execFile, execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { eventually, FinalError } from '../eventually.ts';

const EXAMPLES = fileURLToPath(new URL('../../../examples', import.meta.url));
const PAGE = fileURLToPath(new URL('../../../docs/how-to/locks/use-from-python-and-go.md', import.meta.url));
const PYTHON = '/usr/bin/python3';
const GO = '/usr/bin/go';

/** What is missing for the programs, if anything is. */
export function missingLanguages(): string | undefined {
  const isPython = spawnSync(PYTHON, ['-c', 'import sys; sys.exit(sys.version_info < (3, 11))']).status === 0;
  const [, goMinor = '0'] = /go1\.(\d+)/.exec(spawnSync(GO, ['version'], { encoding: 'utf8' }).stdout ?? '') ?? [];
  const missing = [...(isPython ? [] : [`${PYTHON} 3.11`]), ...(Number(goMinor) >= 19 ? [] : [`${GO} 1.19`])];
  if (missing.length === 0) return undefined;
  return `${missing.join(' and ')} or later is not installed; on Debian: apt-get install python3 golang-go`;
}

export const LANGUAGES = ['python', 'go'] as const;
export type Language = (typeof LANGUAGES)[number];

/** The built programs, with all their runs, so that no run outlives its test. */
export class Programs {
  #dir = '';
  readonly #runs: ProgramRun[] = [];

  build(): void {
    this.#dir = mkdtempSync(join(tmpdir(), 'remora-languages-'));
    execFileSync(GO, ['build', '-buildvcs=false', '-o', join(this.#dir, 'example'), '.'], {
      cwd: join(EXAMPLES, 'go'),
      stdio: 'pipe',
    });
  }

  /** Runs the tests and checks that the folders have for themselves. @throws Error with what they find. */
  async check(language: Language): Promise<void> {
    const run = promisify(execFile);
    const cwd = join(EXAMPLES, language);
    if (language === 'python') {
      await run(PYTHON, ['-B', '-m', 'unittest'], { cwd });
      return;
    }
    await run(GO, ['vet', './...'], { cwd });
    await run(GO, ['test', './...'], { cwd });
    const { stdout } = await run('/usr/bin/gofmt', ['-l', '.'], { cwd });
    if (stdout !== '') throw new Error(`gofmt would change ${stdout}`);
  }

  /** Runs the program that the page shows, and returns what it writes. */
  async documented(language: Language, gateways: readonly string[]): Promise<string> {
    const [, shown] = new RegExp(`\n\`\`\`${language}\n([\\s\\S]*?)\n\`\`\``).exec(readFileSync(PAGE, 'utf8')) ?? [];
    if (shown === undefined) throw new Error(`the page shows no program in ${language}`);
    const own = shown.replace('orders/42', `orders/${language}`);
    const program = gateways.reduce((text, address, i) => text.replace(`http://10.0.0.${i + 1}:7482`, address), own);
    if (program.includes('10.0.0.')) throw new Error('an address is left in the program of the page');
    const run = promisify(execFile);
    if (language === 'python') {
      const env = { PYTHONPATH: join(EXAMPLES, 'python') };
      return (await run(PYTHON, ['-B', '-c', program], { env })).stdout;
    }
    const cwd = join(this.#dir, 'page');
    mkdirSync(cwd);
    const uses = `require example.com/remora v0.0.0\nreplace example.com/remora => ${join(EXAMPLES, 'go')}\n`;
    writeFileSync(join(cwd, 'go.mod'), `module example.com/page\ngo 1.19\n${uses}`);
    writeFileSync(join(cwd, 'main.go'), `${program}\n`);
    return (await run(GO, ['run', '.'], { cwd })).stdout;
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
    if (this.#dir !== '') rmSync(this.#dir, { recursive: true, force: true });
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
