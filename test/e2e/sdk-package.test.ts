/** The SDK as it is published: a tarball, unpacked into programs that know nothing of this workspace. */
import { execFileSync, spawn } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { nodeClock } from '@remora/base';
import { build as bundle } from 'esbuild';
import { connect } from 'remora';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { codeBlocks } from '../../packages/cli/test/docs/markdown.ts';
import { readPage, shelfPages } from '../../packages/cli/test/docs/pages.ts';
import { SdkBackend } from '../support/sdk-backend.ts';
import { type SdkGateway, startSdkGateway } from '../support/sdk-gateway.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** What programs and examples that compile against it need besides, as installed here. */
const INSTALLED = {
  ...{ '@types/node': '.', '@opentelemetry/api': 'test', ioredis: 'test', etcd3: 'test' },
  ...{ 'node-zookeeper-client': 'test', '@types/node-zookeeper-client': 'test' },
};

let dir: string;
let tarball: string;
let gateway: SdkGateway;
beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'remora-package-'));
  const packed = execFileSync(process.execPath, ['scripts/release/sdk-package.mjs', join(dir, 'pack/remora')], {
    cwd: root,
  });
  tarball = packed.toString().trim().split('\n').at(-1) ?? '';
  // Without a network: it depends on no other package.
  execFileSync('npm', ['install', '--offline', '--no-audit', '--no-fund', '--prefix', dir, tarball], { stdio: 'pipe' });
  gateway = await startSdkGateway(new SdkBackend(nodeClock()));
});
afterAll(() => {
  gateway?.stop();
  rmSync(dir, { recursive: true, force: true });
});

function installed(...path: readonly string[]): string {
  return join(dir, 'node_modules/remora', ...path);
}

function write(name: string, text: string): string {
  writeFileSync(join(dir, name), text);
  return name;
}

/** The gateway is in this process, so this process may not stand still meanwhile. */
function output(program: string): Promise<string> {
  const child = spawn(process.execPath, [program, gateway.address], { cwd: dir, stdio: ['ignore', 'pipe', 'inherit'] });
  let out = '';
  child.stdout.on('data', (chunk: Buffer) => {
    out += chunk.toString();
  });
  return new Promise((resolve) => child.once('close', (code) => resolve(`${out}${code}`)));
}

test.each(['README.md', 'methods.md', 'admin.md', 'redlock.md', 'migrate.md', 'errors.md', 'locks.md'])(
  '%s in it links to nothing that is not in it',
  (document) => {
    const text = readFileSync(installed(document), 'utf8');
    const links = [...text.matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map(([, file]) => file ?? '');
    expect(links.filter((file) => !existsSync(installed(file)))).toEqual([]);
    if (document === 'README.md') expect(links.length).toBeGreaterThan(0);
  },
);

/** Tells what the SDK has to complain of, such as a thread that cannot be started. */
const USE = `
const silent = () => {};
const logger = { debug: silent, info: silent, warn: console.log, error: console.log, child: () => logger };
(async () => {
  const client = await connect({ endpoints: process.argv[2], renewInWorker: true, logger });
  const names = await client.lockAll(['a', 'b']).run(({ versions }) => versions.length);
  await new Promise((resolve) => setTimeout(resolve, 300));
  const refused = await connect({ endpoints: '127.0.0.1:1', connectTimeout: '100ms' }).catch((error) => error);
  await client.close();
  console.log(names, refused instanceof RemoraError);
})();
`;

describe.each([
  { how: 'import', name: 'esm.mjs', begin: `import { connect, RemoraError } from 'remora';` },
  { how: 'require', name: 'cjs.cjs', begin: `const { connect, RemoraError } = require('remora');` },
])('a program that uses $how', ({ name, begin }) => {
  test('holds locks, and ends by itself once its client is closed', async () => {
    expect(await output(write(name, begin + USE))).toBe('2 true\n0');
  });
});

/** Holds two locks, one of them by a lease of its own, and throws where nobody catches it. */
const CRASH = `
import { connect } from 'remora';
const [, , endpoints, name, releaseOnCrash, handled] = process.argv;
const client = await connect({ endpoints, releaseOnCrash: releaseOnCrash === 'true' });
const held = await client.lock(name + '/a').acquire();
await client.lock(name + '/b').acquire({ ttl: '1m' });
setTimeout(() => console.log('another task works on'), 50);
if (handled === 'true') process.on('uncaughtException', () => setTimeout(() => (console.log(held.state), process.exit(3)), 100));
const end = Date.now() + 40;
setTimeout(() => {
  while (Date.now() < end + 40); // The other task is due by now.
  throw new Error('boom');
}, 20);
`;

describe('a program that dies of an uncaught exception', () => {
  async function crash(name: string, ...args: readonly string[]) {
    const child = spawn(process.execPath, [write('crash.mjs', CRASH), gateway.address, name, ...args], { cwd: dir });
    let [out, err] = ['', ''];
    child.stdout.on('data', (chunk: Buffer) => (out += chunk));
    child.stderr.on('data', (chunk: Buffer) => (err += chunk));
    const code = await new Promise((resolve) => child.once('close', resolve));
    const client = await connect({ endpoints: gateway.address });
    const left = await client.locks.list({ prefix: `${name}/` }).toArray();
    await client.close();
    return { out, code, says: /Error: boom/.test(err), left: left.map((lock) => String(lock.lock.name)) };
  }

  test('leaves its locks to their TTL', async () => {
    expect(await crash('plain', 'false')).toEqual({ out: '', code: 1, says: true, left: ['plain/a', 'plain/b'] });
  });

  test('gives them back first with `releaseOnCrash`, and dies as it would have died', async () => {
    expect(await crash('released', 'true')).toEqual({ out: '', code: 1, says: true, left: [] });
  });

  test('keeps them if it handles the exception and goes on', async () => {
    const { out, code, left } = await crash('handled', 'true', 'true');
    expect([out.split('\n').includes('active'), code, left]).toEqual([true, 3, ['handled/a', 'handled/b']]);
  });
});

test.each([
  { entry: 'remora', has: 'RemoraError' },
  { entry: 'remora/admin', has: 'RemoraError' },
  { entry: 'remora/metrics', has: 'prometheusMetrics' },
  { entry: 'remora/redlock', has: 'default' },
  { entry: 'remora/migrate', has: 'BothLocks' },
])('what $entry publishes is what its sources export', async ({ entry, has }) => {
  const names = `import * as all from '${entry}'; console.log(Object.keys(all).sort().join());`;
  const expected = Object.keys(await import(entry)).sort();
  expect(expected).toContain(has);
  expect(await output(write('names.mjs', names))).toBe(`${expected.join()}\n0`);
  const required = `console.log(Object.keys(require('${entry}')).sort().join());`;
  expect(await output(write('names.cjs', required))).toBe(`${expected.join()}\n0`);
});

/** It does not close its client: no connection may keep a program alive. */
const ADMINISTER = `
(async () => {
  const admin = new AdminClient({ endpoints: [process.argv[2]], timeoutMs: 2_000 });
  const error = await admin.check().catch((error) => error);
  console.log(error instanceof RemoraError, error.code);
})();
`;

describe.each([
  {
    how: 'import',
    name: 'admin.mjs',
    begin: `import { RemoraError } from 'remora'; import { AdminClient } from 'remora/admin';`,
  },
  {
    how: 'require',
    name: 'admin.cjs',
    begin: `const { RemoraError } = require('remora'); const { AdminClient } = require('remora/admin');`,
  },
])('a program that administers, with $how', ({ name, begin }) => {
  test('gets errors of the class that the SDK exports, and ends by itself', async () => {
    // The gateway of this test serves keys and locks alone.
    expect(await output(write(name, begin + ADMINISTER))).toMatch(/^true \w+\n0$/);
  });
});

const LOCK = `
(async () => {
  const client = await connect({ endpoints: process.argv[2] });
  const redlock = new Redlock([client]);
  const versions = await redlock.using(['a', 'b'], 5000, async (signal, lock) => lock.versions.length);
  const lock = await redlock.acquire(['a'], 5000);
  const error = await redlock.acquire(['a'], 5000, { retryCount: 0 }).catch((error) => error);
  await (await lock.extend(5000)).release();
  await redlock.quit();
  console.log(versions, error instanceof ExecutionError);
})();
`;

describe.each([
  {
    how: 'import',
    name: 'redlock.mjs',
    begin: `import { connect } from 'remora'; import Redlock, { ExecutionError } from 'remora/redlock';`,
  },
  {
    how: 'require',
    name: 'redlock.cjs',
    begin: `const { connect } = require('remora'); const { default: Redlock, ExecutionError } = require('remora/redlock');`,
  },
])('a program that moved from redlock, with $how', ({ name, begin }) => {
  test('locks, and ends by itself once it has quit', async () => {
    expect(await output(write(name, begin + LOCK))).toBe('2 true\n0');
  });
});

describe('its size', () => {
  /** The numbers of kB in the README's table. */
  function documented(row: string): number {
    const readme = readFileSync(installed('README.md'), 'utf8');
    const [, number] = new RegExp(`^\\| ${row} \\| (\\d+) kB`, 'm').exec(readme) ?? [];
    return Number(number);
  }

  /** What a bundler makes of an entry, and the names of the files that are in it. */
  async function bundled(entry: string) {
    const options = {
      bundle: true,
      minify: true,
      write: false,
      metafile: true,
      platform: 'node',
      format: 'esm',
    } as const;
    const contents = `export * from '${entry}';`;
    const { outputFiles, metafile } = await bundle({ ...options, stdin: { contents, resolveDir: dir } });
    const text = outputFiles.map((file) => file.text).join('');
    return { text, inputs: Object.keys(metafile.inputs).filter((input) => input !== '<stdin>') };
  }

  const fileBytes = (folder: string): number =>
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0);

  test('installs nothing but itself', () => {
    expect(readdirSync(join(dir, 'node_modules')).filter((name) => !name.startsWith('.'))).toEqual(['remora']);
    const manifest = JSON.parse(readFileSync(installed('package.json'), 'utf8'));
    expect(Object.keys(manifest).filter((key) => /dependencies/i.test(key))).toEqual([]);
  });

  test.each([
    { row: 'tarball', bytes: async () => statSync(tarball).size },
    { row: 'installed', bytes: async () => fileBytes(installed()) },
    { row: '`remora`, bundled', bytes: async () => gzipSync((await bundled('remora')).text).length },
    { row: '`remora/metrics`, bundled', bytes: async () => gzipSync((await bundled('remora/metrics')).text).length },
    { row: '`remora/admin`, bundled', bytes: async () => gzipSync((await bundled('remora/admin')).text).length },
    { row: '`remora/migrate`, bundled', bytes: async () => gzipSync((await bundled('remora/migrate')).text).length },
    { row: '`remora/redlock`, bundled', bytes: async () => gzipSync((await bundled('remora/redlock')).text).length },
  ])('$row is at most as large as the README says, and not much smaller', async ({ row, bytes }) => {
    const size = (await bytes()) / 1_000;
    expect(size).toBeLessThanOrEqual(documented(row));
    expect(size).toBeGreaterThan(documented(row) / 2);
  });

  test('the main entry contains neither gRPC nor protobuf', async () => {
    const [main, admin] = [await bundled('remora'), await bundled('remora/admin')];
    expect(main.inputs.every((input) => /node_modules\/remora\/[\w-]+\.js$/.test(input))).toBe(true);
    const protocol = /application\/grpc|node:http2|remora\.v1\.Admin|bufbuild/;
    expect([protocol.test(main.text), protocol.test(admin.text)]).toEqual([false, true]);
  });
});

test.each(['LICENSE', 'CHANGELOG.md', 'THIRD-PARTY-LICENSES.txt', 'sbom.cdx.json'])('it contains %s', (file) => {
  expect(readFileSync(installed(file), 'utf8')).not.toBe('');
});

/** What the compiler has against these files. */
function complaints(...files: readonly string[]): readonly string[] {
  for (const [name, owner] of Object.entries(INSTALLED)) {
    if (existsSync(join(dir, 'node_modules', name))) continue;
    mkdirSync(join(dir, 'node_modules', dirname(name)), { recursive: true });
    symlinkSync(join(root, owner, 'node_modules', name), join(dir, 'node_modules', name));
  }
  const settings = { module: 'nodenext', target: 'es2023', lib: ['es2023', 'esnext.disposable'], types: ['node'] };
  const compilerOptions = { ...settings, strict: true, noEmit: true };
  writeFileSync(join(dir, 'tsconfig.json'), JSON.stringify({ compilerOptions, files }));
  try {
    execFileSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', dir], { stdio: 'pipe' });
    return [];
  } catch (error) {
    const lines = String((error as { stdout: Buffer }).stdout).split('\n');
    // What is wrong with declarations of others is not for us to say.
    return lines.filter((line) => /error TS/.test(line) && !/node_modules\/(?!remora\/)/.test(line));
  }
}

const TYPED = `
export async function use(client: RemoraClient): Promise<number> {
  const held: HeldLock = await client.lock('l').acquire({ wait: '5s' });
  const total: number = await client.rwLock('l').runRead({ wait: 0 }, ({ version, signal }) => version + Number(signal.aborted));
  // @ts-expect-error: no duration
  await client.lock('l').run({ wait: 'soon' }, () => {});
  return total + held.stats.queuePosition;
}
`;

const ADMIN_TYPED = `
export async function nodeOf(client: AdminClient, id: number): Promise<admin.Node | undefined> {
  const { nodes } = await client.nodes();
  return nodes.find((node) => node.id === id);
}
`;

const REDLOCK_TYPED = `
export async function use(redlock: Redlock, client: RemoraClient): Promise<number> {
  const other: Redlock = new Redlock([client], { retryCount: 3, driftFactor: 0.02 });
  other.on('error', (error: Error) => void (error instanceof ResourceLockedError));
  let lock: Lock = await redlock.acquire(['a', 'b'], 1_000, { retryCount: 0 });
  lock = await lock.extend(2_000);
  const { attempts }: ExecutionResult = await lock.release();
  const stats: ExecutionStats | undefined = await attempts[0];
  // @ts-expect-error: no setting
  await redlock.using(['a'], 1_000, { retries: 1 }, async () => {});
  return redlock.using(['a'], 1_000, async (signal: RedlockAbortSignal, { version }) => {
    if (signal.aborted) throw signal.error;
    return version + (stats?.votesAgainst.size ?? 0);
  });
}
`;

/** Of a name that an example leaves to its reader, such as what is done under the lock. */
const UNKNOWN_NAME = /\/example-[^/]*error TS(2304|2552|18004):/;

test('programs of both kinds compile against its types, and so do the examples in the documentation', () => {
  const types = 'HeldLock, RemoraClient';
  const redlockTypes = 'Lock, type ExecutionResult, type ExecutionStats, type RedlockAbortSignal';
  const programs = [
    write('typed.mts', `import type { ${types} } from 'remora';${TYPED}`),
    write('typed.cts', `import { type ${types.replace(', ', ', type ')} } from 'remora';${TYPED}`),
    write('admin.mts', `import type { AdminClient, admin } from 'remora/admin';${ADMIN_TYPED}`),
    write('admin.cts', `import { type AdminClient, type admin } from 'remora/admin';${ADMIN_TYPED}`),
    write(
      'redlock.mts',
      `import Redlock, { ResourceLockedError, type ${redlockTypes} } from 'remora/redlock';
import type { RemoraClient } from 'remora';${REDLOCK_TYPED}`,
    ),
    write(
      'redlock.cts',
      `import { default as Redlock, ResourceLockedError, type ${redlockTypes} } from 'remora/redlock';
import type { RemoraClient } from 'remora';${REDLOCK_TYPED}`,
    ),
    write('required.cts', `import remora = require('remora');\nexport const { connect }: typeof remora = remora;\n`),
  ];
  const ambient = `import type * as sdk from 'remora'; import type * as metrics from 'remora/metrics';
declare global { const meter: metrics.OpenTelemetryMeter; const promClient: metrics.PromClient<unknown>; const remora: sdk.RemoraClient; const connect: typeof sdk.connect; const endpoints: string[]; }\n`;
  const examples = shelfPages().flatMap((page) => {
    const blocks = codeBlocks(readPage(page)).filter(({ language }) => language === 'ts');
    const name = page.replace(/\W/g, '-');
    return blocks.map(({ code, line }) => write(`example-${name}-${line}.mts`, `${code}\nexport {};\n`));
  });
  expect(examples.length).toBeGreaterThan(20);
  const found = complaints(...programs, write('ambient.d.mts', ambient), ...examples);
  expect(found.filter((line) => !UNKNOWN_NAME.test(line))).toEqual([]);
});
