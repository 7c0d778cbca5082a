/**
 * Runs the shell blocks of a page of the documentation, as its reader would.
 *
 * PR1. The blocks of a page run in one shell, in order, in an empty directory, so that a later block sees the variables
 *      and files of an earlier one. The first command that fails ends the run, and the error names the block's line.
 * PR2. Addresses and directories in the blocks are replaced: `127.0.0.1:7480` by a node of the test's cluster,
 *      `10.0.0.N` by a loopback address of this run, `/var/lib/remora` by a directory for that machine's node.
 *      `systemctl stop remora` ends the node whose data directory is that of the block's machine.
 * PR3. Nothing outlives the run: the shell leads a process group, which is killed when the run ends.
 */
import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type CodeBlock, codeBlocks } from '../../../packages/cli/test/docs/markdown.ts';
import { ROOT, readPage } from '../../../packages/cli/test/docs/pages.ts';
import type { Cluster } from '../harness.ts';
import { PROGRAM } from '../program.ts';
import { copyTesting } from '../release/copy-testing.ts';

/** Waits for the end of the process: its ports and its directory are free then. */
const STOP = `pid=$(sed -E 's/.*"pid": ?([0-9]+).*/\\1/' < <(tr -d '\\n' < /var/lib/remora/lock/owner.json))
kill "$pid"; while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
`;
/** A guard against hangs: on a busy machine thirty commands with a log-in each take two minutes. */
const RUN_TIMEOUT_MS = 240_000;
/** The last digit of a port, as `npm start` gives them out. */
const PORT_KINDS = ['client', 'peer', 'http', 'health'] as const;

/** Blocks that run. The others are only for the reader (MD1). */
export function runnableBlocks(page: string): readonly CodeBlock[] {
  return codeBlocks(readPage(page)).filter(({ language, file, attributes }) => {
    return file !== undefined || (language === 'sh' && !attributes.has('no-run'));
  });
}

/** The environment for runs: the command `remora`, the SDK, and the replacements for other machines. */
export class PageRunner {
  readonly dir = mkdtempSync(join(tmpdir(), 'remora-docs-'));
  readonly #network = `127.${randomInt(16, 250)}.${randomInt(1, 250)}`;
  readonly #cluster: Cluster | undefined;
  readonly #others: Readonly<Record<string, string>>;

  /** `others`: addresses of other servers in the blocks, and what takes their place. */
  constructor(cluster?: Cluster, others: Readonly<Record<string, string>> = {}) {
    this.#cluster = cluster;
    this.#others = others;
    mkdirSync(join(this.dir, 'bin'));
    const command = join(this.dir, 'bin/remora');
    writeFileSync(command, `#!/bin/sh\nexec '${process.execPath}' '${PROGRAM}' "$@"\n`);
    chmodSync(command, 0o755);
    mkdirSync(join(this.dir, 'node_modules'));
    symlinkSync(join(ROOT, 'packages/client'), join(this.dir, 'node_modules/remora'));
    copyTesting(join(this.dir, 'node_modules/remora-server'));
  }

  /** Runs pages one after the other in one shell (PR1). Rejects with the output if a command fails. */
  async run(...pages: readonly string[]): Promise<void> {
    const work = mkdtempSync(join(this.dir, 'page-'));
    const script = pages.flatMap((page) => runnableBlocks(page).map((block) => this.#step(page, block, work)));
    const prelude = `set -eu -o pipefail\ntrap 'echo "FAILED: $AT"' ERR\nset -E\n`;
    const endpoints = this.#cluster?.endpoints.join(',') ?? this.#placed('10.0.0.1:7480,10.0.0.2:7480,10.0.0.3:7480');
    const child = spawn('bash', ['-c', prelude + script.join('\n')], {
      cwd: work,
      detached: true, // PR3
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: `${join(this.dir, 'bin')}:${process.env.PATH}`, HOME: this.dir, REMORA_ENDPOINTS: endpoints },
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk));
    const killGroup = (): void => {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
      } catch {
        // Nothing of it is left.
      }
    };
    process.on('exit', killGroup);
    const timer = setTimeout(killGroup, RUN_TIMEOUT_MS);
    const code = await new Promise((resolve) => child.once('exit', resolve));
    clearTimeout(timer);
    killGroup();
    process.off('exit', killGroup);
    if (code !== 0) throw new Error(`${pages.join(', ')}: exit code ${code}\n${output}`);
  }

  remove(): void {
    rmSync(this.dir, { recursive: true, force: true });
  }

  #step(page: string, block: CodeBlock, work: string): string {
    const [machine] = block.machines;
    const stops = block.machines.map((each) => this.#placed(STOP, each)).join('');
    const code = block.code.trim() === 'systemctl stop remora' ? stops : this.#placed(block.code, machine);
    const at = `AT='${page}:${block.line}'`;
    if (block.file !== undefined) {
      writeFileSync(join(work, block.file), code, { mode: 0o755 });
      return '';
    }
    if (block.attributes.has('background')) return `${at}\n( exec >'machine.log' 2>&1\n${code}) &`;
    if (!block.attributes.has('fails')) return `${at}\n${code}`;
    writeFileSync(join(work, `fails-${block.line}.sh`), code);
    return `${at}\nif bash -eu -o pipefail fails-${block.line}.sh; then echo "SUCCEEDED: $AT"; exit 1; fi`;
  }

  /** PR2. */
  #placed(code: string, on?: string): string {
    const [, address = '0'] = /--client-listen 10\.0\.0\.(\d+)/.exec(code) ?? [];
    const machine = on ?? address;
    const ours = Object.entries(this.#others).reduce((text, [from, to]) => text.replaceAll(from, to), code);
    return ours
      .replaceAll('npx remora', 'remora')
      .replaceAll(/127\.0\.0\.1:(7[45]\d)(\d)/g, (address, tens: string, kind: string) => {
        const ports = this.#cluster?.nodes[Number(tens) - 748]?.ports;
        const name = PORT_KINDS[Number(kind)];
        return ports === undefined || name === undefined ? address : `127.0.0.1:${ports[name]}`;
      })
      .replaceAll(/(--client-listen 10\.0\.0\.\d+:7480)/g, `$1 --health-listen 10.0.0.${address}:7483`)
      .replaceAll(/10\.0\.0\.(\d+)/g, `${this.#network}.$1`)
      .replaceAll('/var/lib/remora', join(this.dir, `machine-${machine}`));
  }
}
