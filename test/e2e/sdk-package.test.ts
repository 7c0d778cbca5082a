/** The SDK as it is published: a tarball, unpacked into programs that know nothing of this workspace. */
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { nodeClock } from '@remora/base';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { codeBlocks } from '../../packages/cli/test/docs/markdown.ts';
import { readPage, shelfPages } from '../../packages/cli/test/docs/pages.ts';
import { SdkBackend } from '../support/sdk-backend.ts';
import { type SdkGateway, startSdkGateway } from '../support/sdk-gateway.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** What its dependencies, and whoever compiles against it, need besides; as installed here. */
const INSTALLED = {
  '@grpc/grpc-js': 'packages/client',
  '@bufbuild/protobuf': 'packages/protocol',
  '@types/node': '.',
  '@opentelemetry/api': 'test',
};

let dir: string;
let gateway: SdkGateway;
beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'remora-package-'));
  const packed = execFileSync(process.execPath, ['scripts/release/sdk-package.mjs', join(dir, 'pack/remora')], {
    cwd: root,
  });
  const tarball = packed.toString().trim().split('\n').at(-1) ?? '';
  mkdirSync(join(dir, 'node_modules/remora'), { recursive: true });
  execFileSync('tar', ['-xzf', tarball, '--strip-components=1', '-C', join(dir, 'node_modules/remora')]);
  for (const [name, owner] of Object.entries(INSTALLED)) {
    mkdirSync(join(dir, 'node_modules', dirname(name)), { recursive: true });
    symlinkSync(join(root, owner, 'node_modules', name), join(dir, 'node_modules', name));
  }
  gateway = await startSdkGateway(new SdkBackend(nodeClock()));
});
afterAll(() => {
  gateway?.stop();
  rmSync(dir, { recursive: true, force: true });
});

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

test.each(['README.md', 'methods.md', 'errors.md', 'locks.md'])(
  '%s in it links to nothing that is not in it',
  (document) => {
    const text = readFileSync(join(dir, 'node_modules/remora', document), 'utf8');
    const links = [...text.matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map(([, file]) => file ?? '');
    expect(links.filter((file) => !existsSync(join(dir, 'node_modules/remora', file)))).toEqual([]);
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

test('what it publishes is what its sources export', async () => {
  const exported = `import * as all from 'remora'; console.log(Object.keys(all).sort().join());`;
  expect(await output(write('names.mjs', exported))).toBe(
    `${Object.keys(await import('remora'))
      .sort()
      .join()}\n0`,
  );
});

/** What the compiler has against these files. */
function complaints(...files: readonly string[]): readonly string[] {
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

/** Of a name that an example leaves to its reader, such as what is done under the lock. */
const UNKNOWN_NAME = /\/example-[^/]*error TS(2304|2552|18004):/;

test('programs of both kinds compile against its types, and so do the examples in the documentation', () => {
  const types = 'HeldLock, RemoraClient';
  const programs = [
    write('typed.mts', `import type { ${types} } from 'remora';${TYPED}`),
    write('typed.cts', `import { type ${types.replace(', ', ', type ')} } from 'remora';${TYPED}`),
    write('required.cts', `import remora = require('remora');\nexport const { connect }: typeof remora = remora;\n`),
  ];
  const ambient = `import type * as sdk from 'remora';
declare global { const remora: sdk.RemoraClient; const connect: typeof sdk.connect; const endpoints: string[]; }\n`;
  const examples = shelfPages().flatMap((page) => {
    const blocks = codeBlocks(readPage(page)).filter(({ language }) => language === 'ts');
    const name = page.replace(/\W/g, '-');
    return blocks.map(({ code, line }) => write(`example-${name}-${line}.mts`, `${code}\nexport {};\n`));
  });
  expect(examples.length).toBeGreaterThan(20);
  const found = complaints(...programs, write('ambient.d.mts', ambient), ...examples);
  expect(found.filter((line) => !UNKNOWN_NAME.test(line))).toEqual([]);
});
