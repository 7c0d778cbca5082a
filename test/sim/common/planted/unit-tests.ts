/** Finds out which unit tests notice a planted bug. */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ALLOWED } from '../../../support/architecture-rules.ts';
import type { PlantedBug } from './planted-bug.ts';

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
const VITEST = join(ROOT, 'node_modules/vitest/vitest.mjs');
const RUN_MS_MAX = 1_200_000;
/** Tests the client together with the nodes that it calls. */
const SDK_TESTS = 'test/sdk/';

interface Report {
  readonly testResults: readonly { readonly name: string; readonly status: string }[];
}

/**
 * Runs, with the bug in place, the unit tests of the bug's package, of all packages that import it, and of the SDK.
 * Returns the first file that fails, relative to the root of the repository. Returns undefined if all pass.
 * @throws Error if the tests did not run.
 */
export async function failingUnitTest(bug: PlantedBug): Promise<string | undefined> {
  const dir = mkdtempSync(join(tmpdir(), 'planted-'));
  try {
    const file = join(dir, 'report.json');
    await runTests(bug, file);
    const { testResults } = JSON.parse(readFileSync(file, 'utf8')) as Report;
    const failed = testResults.filter(({ status }) => status === 'failed').map(({ name }) => relative(ROOT, name));
    return failed.sort()[0];
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function foldersThatReach(file: string): readonly string[] {
  const own = file.split('/')[1] ?? '';
  const importers = Object.keys(ALLOWED).filter((folder) => ALLOWED[folder]?.includes(own) === true);
  return [own, ...importers].map((folder) => `packages/${folder}/`).concat(SDK_TESTS);
}

function runTests({ name, file }: PlantedBug, report: string): Promise<void> {
  const which = ['run', '--project', 'unit', ...foldersThatReach(file), '--bail=1'];
  const args = [VITEST, ...which, '--reporter=json', `--outputFile=${report}`];
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
