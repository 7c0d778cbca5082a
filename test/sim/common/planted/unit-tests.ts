/** Which unit tests notice a planted bug. */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ALLOWED } from '../../../support/architecture-rules.ts';
import type { PlantedBug } from './planted-bug.ts';

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
const VITEST = join(ROOT, 'node_modules/vitest/vitest.mjs');
const RUN_MS_MAX = 600_000;

interface Report {
  readonly testResults: readonly { readonly name: string; readonly status: string }[];
}

/**
 * Runs the tests of the bug's package, and then of those that import it, with the bug in it. The first file that fails,
 * from the root of the repository; undefined when all pass.
 * @throws Error when the tests did not run.
 */
export async function failingUnitTest(bug: PlantedBug): Promise<string | undefined> {
  for (const folder of packagesThatReach(bug.file)) {
    const failed = await failingTestIn(folder, bug);
    if (failed !== undefined) return failed;
  }
  return undefined;
}

/** The package of a file first. */
function packagesThatReach(file: string): readonly string[] {
  const own = file.split('/')[1] ?? '';
  return [own, ...Object.keys(ALLOWED).filter((folder) => ALLOWED[folder]?.includes(own) === true)];
}

async function failingTestIn(folder: string, bug: PlantedBug): Promise<string | undefined> {
  const dir = mkdtempSync(join(tmpdir(), 'planted-'));
  try {
    const file = join(dir, 'report.json');
    await runTests(folder, bug, file);
    const { testResults } = JSON.parse(readFileSync(file, 'utf8')) as Report;
    const failed = testResults.filter(({ status }) => status === 'failed').map(({ name }) => relative(ROOT, name));
    return failed.sort()[0];
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function runTests(folder: string, { name }: PlantedBug, report: string): Promise<void> {
  const which = ['run', '--project', 'unit', `packages/${folder}/`, '--passWithNoTests', '--bail=1'];
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
