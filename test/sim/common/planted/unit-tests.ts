/** Which unit tests notice a planted bug. */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { PlantedBug } from './planted-bug.ts';

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
const VITEST = join(ROOT, 'node_modules/vitest/vitest.mjs');
const RUN_MS_MAX = 600_000;

interface Report {
  readonly testResults: readonly { readonly name: string; readonly status: string }[];
}

/**
 * Runs the tests of the packages that reach the bug's file, with the bug in it. The file of the first that fails, from
 * the root of the repository; undefined when all pass.
 * @throws Error when the tests did not run.
 */
export async function failingUnitTest(bug: PlantedBug): Promise<string | undefined> {
  const dir = mkdtempSync(join(tmpdir(), 'planted-'));
  try {
    const file = join(dir, 'report.json');
    await runTests(bug, file);
    const { testResults } = JSON.parse(readFileSync(file, 'utf8')) as Report;
    if (testResults.length === 0) throw new Error(`no unit test reaches ${bug.file}`);
    const failed = testResults.filter(({ status }) => status === 'failed').map(({ name }) => relative(ROOT, name));
    return failed.sort()[0];
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function runTests({ name, file }: PlantedBug, report: string): Promise<void> {
  const tests = ['related', join(ROOT, file), '--run', '--project', 'unit', '--exclude', 'test/**'];
  const args = [VITEST, ...tests, '--bail=1', '--reporter=json', `--outputFile=${report}`];
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, {
      cwd: ROOT,
      stdio: 'ignore',
      timeout: RUN_MS_MAX,
      env: { ...process.env, MUTATION: name },
    });
    child.on('error', reject);
    child.on('exit', () => resolve());
  });
}
