/**
 * The counter of packages/raft/README.md, run as its readers would: three processes, typed at, killed, started again.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { eventually } from './eventually.ts';
import { freePorts } from './free-ports.ts';

const RAFT = fileURLToPath(new URL('../../packages/raft', import.meta.url));
const EXAMPLE = join(RAFT, 'examples/counter.mjs');

class CounterNode {
  readonly #child: ChildProcess;
  readonly #lines: string[] = [];

  constructor(id: number, dir: string, addresses: string) {
    const env = { ...process.env, DATA_DIR: join(dir, `node-${id}`), ADDRESSES: addresses };
    this.#child = spawn(process.execPath, [EXAMPLE, String(id)], { env, stdio: ['pipe', 'pipe', 'inherit'] });
    if (this.#child.stdout === null) throw new Error('its output is piped');
    createInterface({ input: this.#child.stdout }).on('line', (line) => this.#lines.push(line));
  }

  type(line: string): void {
    this.#child.stdin?.write(`${line}\n`);
  }

  get value(): number | undefined {
    const line = this.#lines.findLast((text) => text.startsWith('the counter is '));
    return line === undefined ? undefined : Number(line.slice('the counter is '.length));
  }

  get leads(): boolean {
    return this.#lines.findLast((text) => /lead/.test(text) && !text.startsWith('refused')) === 'I lead';
  }

  get last(): string | undefined {
    return this.#lines.at(-1);
  }

  kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return Promise.resolve();
    return new Promise((resolve) => {
      this.#child.once('exit', () => resolve());
      this.#child.kill('SIGKILL');
    });
  }
}

describe('the counter of the README', () => {
  const nodes = new Map<number, CounterNode>();
  const dir = mkdtempSync(join(tmpdir(), 'remora-counter-'));

  afterEach(async () => {
    await Promise.all([...nodes.values()].map((node) => node.kill()));
    rmSync(dir, { recursive: true, force: true });
  });

  it('stands in the README as it runs, in at most fifty lines', () => {
    const source = readFileSync(EXAMPLE, 'utf8');
    expect(readFileSync(join(RAFT, 'README.md'), 'utf8')).toContain(`\`\`\`js\n${source}\`\`\``);
    expect(source.trimEnd().split('\n').length).toBeLessThanOrEqual(50);
  });

  it('counts alike on three nodes, loses nothing with its leader, and has its value back after a restart', async () => {
    const ports = await freePorts('127.0.0.1', 3);
    const addresses = ports.map((port) => `127.0.0.1:${port}`).join(',');
    const start = (id: number) => nodes.set(id, new CounterNode(id, dir, addresses));
    const all = (value: number) =>
      eventually(`all say ${value}`, () => [...nodes.values()].every((node) => node.value === value));
    const leader = () => eventually('one leads', () => [...nodes].find(([, node]) => node.leads));
    for (const id of [1, 2, 3]) start(id);

    const [first, firstNode] = await leader();
    firstNode.type('5');
    firstNode.type('37');
    await all(42);
    firstNode.type('many');
    await eventually('it refuses', () => firstNode.last?.includes('refused: not a number'));

    await firstNode.kill();
    nodes.delete(first);
    const [, secondNode] = await leader();
    secondNode.type('-2');
    await all(40);
    start(first);
    await all(40);
  });
});
