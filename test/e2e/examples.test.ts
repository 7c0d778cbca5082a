/**
 * The examples in TypeScript, run by the commands of their pages. Each prints what its page says, except for the
 * versions of locks. Their types are checked as well, because each command compiles them.
 */
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type CodeBlock, codeBlocks } from '../../packages/cli/test/docs/markdown.ts';
import { ROOT, readPage } from '../../packages/cli/test/docs/pages.ts';
import { describeWith } from '../support/needs.ts';
import { missingPostgres, PostgresServer } from './examples/postgres-server.ts';
import { Cluster } from './harness.ts';
import { missingRedis, RedisServers } from './redlock/redis-servers.ts';

let cluster: Cluster;
beforeAll(async () => {
  cluster = await Cluster.start();
});
afterAll(() => cluster?.stop());

test('nest: what its page says', async () => {
  await runExample('nest');
});

describeWith(missingRedis(), 'with Redis', () => {
  let redis: RedisServers;
  beforeAll(async () => {
    redis = await RedisServers.start(1);
  });
  afterAll(() => redis?.stop());

  const servers = () => ({ REDIS_URL: redis.urls[0] ?? '' });

  test('bullmq: what its page says', async () => {
    await runExample('bullmq', servers());
  });

  describeWith(missingPostgres(), 'and PostgreSQL', () => {
    let postgres: PostgresServer;
    beforeAll(async () => {
      postgres = await PostgresServer.start();
    });
    afterAll(() => postgres?.stop());

    test('fences: what its page says, and each time with a version that is lower than the next', async () => {
      const printed = await runExample('fences', { ...servers(), DATABASE_URL: postgres.url });
      const versions = [...printed.matchAll(VERSION)].map(([text]) => Number(text.split(' ')[1]));
      for (const at of [0, 3]) {
        const [paused = 0, next, late] = versions.slice(at);
        expect(next).toBeGreaterThan(paused);
        expect(late).toBe(paused);
      }
    });
  });
});

test.each(['bullmq', 'fences'])('%s: its page quotes the code as it is', (name) => {
  const folder = join(ROOT, 'examples', name);
  const files = readdirSync(folder).filter((file) => file.endsWith('.ts'));
  const code = files.map((file) => readFileSync(join(folder, file), 'utf8')).join('\n');
  const quoted = codeBlocks(readPage(`examples/${name}/README.md`)).filter(({ language }) =>
    /^(ts|lua)$/.test(language),
  );
  const lines = quoted.flatMap((block) => block.code.trim().split('\n'));
  expect(lines.length).toBeGreaterThan(4);
  expect(lines.filter((line) => !code.includes(line.trim()))).toEqual([]);
});

const VERSION = /\bversion \d+/g;

/** Runs the command of the example's page, and compares what it prints with the page. Returns what it prints. */
async function runExample(name: string, env: Readonly<Record<string, string>> = {}): Promise<string> {
  const blocks = codeBlocks(readPage(`examples/${name}/README.md`));
  const block = (isIt: (block: CodeBlock) => boolean) =>
    blocks.find(isIt)?.code ?? `the page of ${name} has no such block`;
  const command = block(({ language, attributes }) => language === 'sh' && !attributes.has('no-run'));
  const expected = block(({ language }) => language === 'text');
  const { code, out, err } = await run(command, { ...env, REMORA_ENDPOINTS: cluster.endpoints.join(',') });
  expect({ code, err, out: out.replaceAll(VERSION, 'version N') }).toEqual({
    ...{ code: 0, err: '', out: expected.replaceAll(VERSION, 'version N') },
  });
  return out;
}

/** Runs it in a shell whose processes all end with it. `out` is without npm's own lines. */
async function run(command: string, env: Readonly<Record<string, string>>) {
  const child = spawn('bash', ['-c', command], {
    cwd: ROOT,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env, npm_config_loglevel: 'silent' },
  });
  const killGroup = (): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    } catch {
      // Nothing of it is left.
    }
  };
  process.on('exit', killGroup);
  let [out, err] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => (out += chunk));
  child.stderr.on('data', (chunk: Buffer) => (err += chunk));
  const code = await new Promise((resolve) => child.once('close', resolve));
  killGroup();
  process.off('exit', killGroup);
  return { code, out, err };
}
