// `npm test` installs, builds, lints, checks types and runs every test but the long ones; `npm run test:long` installs,
// builds and runs the long ones (docs/testing.md). Further arguments go to vitest.
// The last line is `N passed, N failed`, and `, N skipped` if there are any; each check before the tests counts as one,
// so that it agrees with the exit code.
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from './build.mjs';
import { install } from './install.mjs';
import { run, tool } from './lib.mjs';

const args = process.argv.slice(2);
const long = args[0] === '--long';
if (long) args.shift();

await install();
await build();

const steps = [
  { name: 'lint', args: [tool('@biomejs/biome', 'bin/biome'), 'check', '.'] },
  { name: 'types', args: [tool('typescript', 'bin/tsc'), '-p', 'tsconfig.check.json'] },
  { name: 'types of examples', args: [tool('typescript', 'bin/tsc'), '-p', 'examples', '--noEmit'] },
  { name: 'unused exports', args: [tool('knip', 'bin/knip.js'), '--no-progress', '--no-config-hints'] },
  { name: 'house rules', args: ['scripts/house.mjs'] },
];
const dir = mkdtempSync(join(tmpdir(), 'remora-test-'));
let passed = 0;
const failures = [];
// All at once: one of them keeps only one processor busy.
await Promise.all((long ? [] : steps).map(check));

console.log(`> ${long ? 'long tests' : 'tests'}`);
const countsFile = join(dir, 'counts.json');
const projects = (long ? ['long', 'long-system'] : ['unit', 'system']).flatMap((name) => ['--project', name]);
const code = await run(
  process.execPath,
  [tool('vitest', 'vitest.mjs'), 'run', '--reporter=./scripts/test-reporter.mjs', ...projects, ...args],
  { env: { ...process.env, REMORA_TEST_COUNTS: countsFile } },
);
const counts = readCounts();
rmSync(dir, { recursive: true, force: true });

if (failures.length > 0) console.error(`\nfailed before the tests: ${failures.join(', ')}`);
// A run that broke off, or failed for a reason other than a test, is a failure too.
const failed = failures.length + Math.max(counts.failed, code === 0 ? 0 : 1);
process.exitCode = failed === 0 ? 0 : 1;
const skipped = counts.skipped > 0 ? `, ${counts.skipped} skipped` : '';
console.log(`${passed + counts.passed} passed, ${failed} failed${skipped}`);

/** Runs a step, and prints what it says when it has ended. */
async function check({ name, args }) {
  const file = join(dir, `${name}.log`);
  const output = openSync(file, 'w');
  const code = await run(process.execPath, args, { stdio: ['ignore', output, output] });
  closeSync(output);
  console.log(`> ${name}\n${readFileSync(file, 'utf8').trimEnd()}`);
  if (code === 0) passed += 1;
  else failures.push(name);
}

function readCounts() {
  try {
    return JSON.parse(readFileSync(countsFile, 'utf8'));
  } catch (error) {
    console.error(`vitest left no counts: ${error.message}`);
    return { passed: 0, failed: 1, skipped: 0 };
  }
}
