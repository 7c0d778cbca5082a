/** The node for tests as it is published, beside the SDK as it is published. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { copyTesting } from './release/copy-testing.ts';
import { lockTests, TESTING_PRINTED, TESTING_PROGRAMS, TESTING_TYPED } from './release/testing-programs.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

let dir: string;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'remora-testing-'));
  execFileSync(process.execPath, ['scripts/release/sdk-package.mjs', join(dir, 'node_modules/remora')], { cwd: root });
  copyTesting(join(dir, 'node_modules/remora-server'));
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

function write(name: string, text: string): string {
  writeFileSync(join(dir, name), text);
  return name;
}

function output(...args: readonly string[]): string {
  return execFileSync(process.execPath, args, {
    cwd: dir,
    env: runnerFree(),
    stdio: ['ignore', 'pipe', 'pipe'],
  }).toString();
}

/** node:test reports in another way to a parent that is a test runner, too. */
function runnerFree(): NodeJS.ProcessEnv {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  return env;
}

test.each(Object.entries(TESTING_PROGRAMS))(
  '%s gets clients and errors of its own classes, and ends by itself',
  (name, text) => {
    expect(output(write(name, text))).toBe(TESTING_PRINTED);
  },
);

test('the fifty lock tests run under node:test', async () => {
  const name = write('locks.test.mjs', await lockTests('node:test', 'esm'));
  expect(output('--test', '--test-reporter=tap', name)).toMatch(/^# pass 50\n# fail 0$/m);
});

test('programs of both kinds compile against its types', () => {
  const names = `startTestCluster, type TestCluster`;
  const sdk = `import type { RemoraClient } from 'remora';`;
  const files = ['typed.mts', 'typed.cts'].map((name) =>
    write(
      name,
      `${sdk.replace('type {', name.endsWith('cts') ? '{ type' : 'type {')}\nimport { ${names} } from 'remora-server/testing';${TESTING_TYPED}`,
    ),
  );
  mkdirSync(join(dir, 'node_modules/@types'), { recursive: true });
  symlinkSync(join(root, 'node_modules/@types/node'), join(dir, 'node_modules/@types/node'));
  const settings = { module: 'nodenext', target: 'es2023', lib: ['es2023', 'esnext.disposable'], types: ['node'] };
  const compilerOptions = { ...settings, strict: true, noEmit: true };
  write('tsconfig.json', JSON.stringify({ compilerOptions, files }));
  output(join(root, 'node_modules/typescript/bin/tsc'), '-p', dir);
});

test('the SDK contains nothing of it, and needs no other package', () => {
  const sdk = join(dir, 'node_modules/remora');
  const scripts = readdirSync(sdk).filter((name) => /\.(c?js|json)$/.test(name));
  expect(scripts.length).toBeGreaterThan(4);
  for (const name of scripts)
    expect(readFileSync(join(sdk, name), 'utf8'), name).not.toMatch(/startTestCluster|SharedClock|testing/);
  expect(
    Object.keys(JSON.parse(readFileSync(join(sdk, 'package.json'), 'utf8'))).filter((key) => /dependencies/i.test(key)),
  ).toEqual([]);
});
