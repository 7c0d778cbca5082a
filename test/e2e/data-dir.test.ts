import { cpSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Level } from 'level';
import { connect } from 'remora';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from './eventually.ts';
import { Cluster } from './harness.ts';
import type { NodeProcess } from './node-process.ts';

/** The exit code for everything that is wrong with a data directory; a supervisor does not start such a node again. */
const DATA_DIR = 3;
const PORT_TAKEN = 4;
const USAGE = 2;

let cluster: Cluster;

beforeAll(async () => {
  cluster = await Cluster.start();
});
afterAll(() => cluster?.stop());

/** Starts a node that is to refuse, and gives its exit code and what it said last. */
async function refusal(
  node: NodeProcess,
  flags: Readonly<Record<string, string>> = {},
): Promise<{ readonly code: number | null; readonly says: string }> {
  node.start(flags);
  await eventually(`${node.name} has ended`, () => !node.running).catch((cause: unknown) => {
    throw new Error(`it did not refuse to run:\n${node.logTail(20)}`, { cause });
  });
  const { code } = await node.exit;
  return { code, says: node.logTail(3) };
}

/** Flips a bit of every row of the engine. */
async function flipInEngine(dataDir: string): Promise<void> {
  const engine = new Level<Buffer, Buffer>(join(dataDir, 'engine'), { keyEncoding: 'buffer', valueEncoding: 'buffer' });
  for (const [key, value] of await engine.iterator({ gt: Buffer.alloc(0) }).all()) {
    value[0] = (value[0] ?? 0) ^ 1;
    await engine.put(key, value);
  }
  await engine.close();
}

/** Flips a bit in what LevelDB took last: it drops all of it at the next start. */
function flipInLogOfEngine(dataDir: string): void {
  const dir = join(dataDir, 'engine');
  const path = join(dir, readdirSync(dir).find((file) => file.endsWith('.log')) ?? 'no log');
  const bytes = readFileSync(path);
  bytes[0] = (bytes[0] ?? 0) ^ 1;
  writeFileSync(path, bytes);
}

/** What a second process on the ports of a node that is down would use. */
const elsewhere = (dir: string) => ({ 'data-dir': join(cluster.dir, dir) });

test('a data directory that another process uses is refused, and the message names that process', async () => {
  const spare = await cluster.addJoining();
  const { code, says } = await refusal(spare, { 'data-dir': cluster.node(1).dataDir });
  expect(code).toBe(DATA_DIR);
  expect(says).toContain(`is in use by another process (process ${cluster.node(1).pid})`);
});

test('a port that is taken is named with its flag', async () => {
  const spare = await cluster.addJoining();
  const { code, says } = await refusal(spare, { 'client-listen': `127.0.0.1:${cluster.node(1).ports.client}` });
  expect(code).toBe(PORT_TAKEN);
  expect(says).toMatch(new RegExp(`${cluster.node(1).ports.client}.*--client-listen`));
});

test('options that contradict one another are refused before anything is touched', async () => {
  const spare = await cluster.addJoining();
  const { code, says } = await refusal(spare, { 'client-listen': '0.0.0.0:7480' });
  expect(code).toBe(USAGE);
  expect(says).toContain('--insecure');
});

test('a data directory of another node, of a newer format, and a damaged one are refused', async () => {
  const node = cluster.node(3);
  await node.end('SIGTERM');
  const identity = JSON.parse(readFileSync(join(node.dataDir, 'node.json'), 'utf8')) as { formatVersion: number };
  cpSync(node.dataDir, join(cluster.dir, 'newer'), { recursive: true });
  cpSync(node.dataDir, join(cluster.dir, 'damaged'), { recursive: true });
  cpSync(node.dataDir, join(cluster.dir, 'foreign'), { recursive: true });
  cpSync(node.dataDir, join(cluster.dir, 'rotten'), { recursive: true });
  cpSync(node.dataDir, join(cluster.dir, 'shortened'), { recursive: true });
  writeFileSync(
    join(cluster.dir, 'newer', 'node.json'),
    JSON.stringify({ ...identity, formatVersion: identity.formatVersion + 1 }),
  );
  writeFileSync(join(cluster.dir, 'damaged', 'node.json'), '{"formatVersion":');

  const spare = await cluster.addJoining();
  const otherNode = await refusal(spare, elsewhere('foreign'));
  expect(otherNode).toMatchObject({ code: DATA_DIR, says: expect.stringContaining('belongs to node n3, not to node') });

  const newer = await refusal(node, elsewhere('newer'));
  expect(newer).toMatchObject({
    code: DATA_DIR,
    says: expect.stringMatching(/has format 2; this program reads up to 1/),
  });

  const damaged = await refusal(node, elsewhere('damaged'));
  expect(damaged).toMatchObject({ code: DATA_DIR, says: expect.stringMatching(/node\.json is damaged/) });

  await flipInEngine(join(cluster.dir, 'rotten'));
  const rotten = await refusal(node, elsewhere('rotten'));
  expect(rotten).toMatchObject({
    code: DATA_DIR,
    says: expect.stringMatching(/the storage engine is damaged in .*rotten/),
  });

  flipInLogOfEngine(join(cluster.dir, 'shortened'));
  const shortened = await refusal(node, elsewhere('shortened'));
  expect(shortened).toMatchObject({ code: DATA_DIR, says: expect.stringMatching(/is damaged/) });

  // None of that harmed the directory itself.
  await cluster.restart(3);
});

test.each(['log', 'engine'])('a node that comes back without its %s ends', async (part) => {
  const node = cluster.node(3);
  const path = join(node.dataDir, part);
  await node.end('SIGKILL');
  renameSync(path, `${path}.elsewhere`);
  mkdirSync(path); // as where a disk is not mounted
  const { code, says } = await refusal(node);
  expect(code).toBe(DATA_DIR);
  expect(says).toContain(`${part}/ is empty`);
  rmSync(path, { recursive: true });
  expect(await refusal(node)).toMatchObject({ code: DATA_DIR });
  renameSync(`${path}.elsewhere`, path);
  await cluster.restart(3);
});

test('a node that comes back without its data is refused by the others, stops, and the cluster goes on without it', async () => {
  const node = cluster.node(2);
  await node.end('SIGKILL');
  rmSync(node.dataDir, { recursive: true });
  const { code, says } = await refusal(node);
  expect(code).toBe(DATA_DIR);
  expect(node.log()).toMatch(/came back without its data/);
  expect(says).not.toBe('');
  await using client = await connect({ endpoints: [cluster.node(1).client, cluster.node(3).client] });
  await eventually('the others serve', async () => (await client.kv.put('still', 'here')).revision);
  // Not even a second attempt, now with a directory that is its own, gets it in.
  expect(await refusal(node)).toMatchObject({ code: DATA_DIR });
});
