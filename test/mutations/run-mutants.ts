/** Runs the tests that must notice mutations, with one mutation at a time in the source. */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { RuleMutation } from './mutation.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const VITEST = join(ROOT, 'node_modules/vitest/vitest.mjs');
/** Longer than the two minutes after which vitest fails a test that hangs: some mutations make their test wait. */
const RUN_MS_MAX = 240_000;

/** `survived`: the test passes although the rule is broken. `broken`: the run says nothing about the mutation. */
type Verdict = 'killed' | 'survived' | 'broken';

interface Outcome {
  readonly mutation: RuleMutation;
  readonly verdict: Verdict;
  readonly detail: string;
}

/** The mutations that a command runs. */
export interface Mutants {
  /** The command's name: `pnpm mutants:raft`. */
  readonly command: string;
  /** The location of their table. */
  readonly place: string;
  readonly mutations: readonly RuleMutation[];
}

const usage = ({ command, place }: Mutants): string => `${command} [NAME…] [options]
  NAME       a mutation of ${place} (default: all that a test must kill)
  --jobs N   tests to run at a time (default 2)
  --list     the names of all mutations, with their rules`;

interface Chosen {
  readonly chosen: readonly RuleMutation[];
  readonly jobs: number;
  readonly shown: string | undefined;
}

/** Throws an error for an invalid command line, because a run without mutations would succeed. */
function choose(mutants: Mutants, args: readonly string[]): Chosen {
  const { mutations } = mutants;
  const { values, positionals } = parseArgs({
    args: [...args],
    options: {
      jobs: { type: 'string', default: '2' },
      list: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
    allowPositionals: true,
  });
  const jobs = Number(values.jobs);
  if (!Number.isSafeInteger(jobs) || jobs < 1)
    throw new Error(`--jobs: "${values.jobs}" is not a whole number above 0`);
  const unknown = positionals.find((name) => !mutations.some((mutation) => mutation.name === name));
  if (unknown !== undefined) throw new Error(`there is no mutation '${unknown}': --list shows them`);
  const chosen = mutations.filter(({ name }) => positionals.length === 0 || positionals.includes(name));
  const list = mutations.map(({ name, rule }) => `${name}: ${rule}`).join('\n');
  return { chosen, jobs, shown: values.help ? usage(mutants) : values.list ? list : undefined };
}

/** The exit code: 0 if every mutation was killed by its test, 2 for invalid arguments. */
export async function runMutants(mutants: Mutants, args: readonly string[]): Promise<number> {
  let choice: Chosen;
  try {
    choice = choose(mutants, args);
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n\n${usage(mutants)}`);
    return 2;
  }
  const { chosen, jobs, shown } = choice;
  if (shown !== undefined) {
    console.log(shown);
    return 0;
  }
  const dir = mkdtempSync(join(tmpdir(), 'mutants-'));
  try {
    console.log(`${chosen.length} mutations, ${jobs} at a time`);
    const failures = [...(await unmutatedFailures(chosen, dir)), ...(await runAll(chosen, jobs, dir))];
    for (const failure of failures) console.error(failure);
    console.log(`${chosen.length} mutations, ${failures.length} failures`);
    return failures.length === 0 ? 0 : 1;
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** A test that fails anyway kills nothing: all named tests must pass on the unchanged source. */
async function unmutatedFailures(mutations: readonly RuleMutation[], dir: string): Promise<string[]> {
  const files = [...new Set(mutations.map(({ killedBy }) => killedBy.file))];
  const results = await runTests({ files, mutation: undefined, report: join(dir, 'unmutated.json') });
  return mutations
    .filter(({ killedBy }) => statusOf(results, killedBy.test) !== 'passed')
    .map(({ name, killedBy }) => `${name}: '${killedBy.test}' does not pass on the source as it is`);
}

async function runAll(mutations: readonly RuleMutation[], jobs: number, dir: string): Promise<string[]> {
  const waiting = [...mutations];
  const failures: string[] = [];
  const worker = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const { mutation, verdict, detail } = await runOne(next, dir);
      console.log(`${verdict.padEnd(8)}  ${mutation.name}`);
      if (verdict !== 'killed') failures.push(`${mutation.name}: ${detail}`);
    }
  };
  await Promise.all(Array.from({ length: Math.max(1, jobs) }, worker));
  return failures;
}

async function runOne(mutation: RuleMutation, dir: string): Promise<Outcome> {
  const { file, test } = mutation.killedBy;
  const report = join(dir, `${mutation.name}.json`);
  const results = await runTests({ files: [file], mutation: mutation.name, report });
  const status = statusOf(results, test);
  if (status === 'failed') return { mutation, verdict: 'killed', detail: '' };
  if (status === 'passed') return { mutation, verdict: 'survived', detail: `'${test}' passes although it is in` };
  return { mutation, verdict: 'broken', detail: `'${test}' did not run in ${file}` };
}

interface TestResults {
  readonly testResults: readonly {
    readonly assertionResults: readonly { readonly title: string; readonly status: string }[];
  }[];
}

function statusOf(results: TestResults | undefined, test: string): string | undefined {
  return results?.testResults.flatMap((file) => file.assertionResults).find(({ title }) => title === test)?.status;
}

/** Undefined if there is no report, because the runner itself failed. */
async function runTests(run: {
  readonly files: readonly string[];
  readonly mutation: string | undefined;
  readonly report: string;
}): Promise<TestResults | undefined> {
  const args = [VITEST, 'run', '--project', 'unit', ...run.files, '--reporter=json', `--outputFile=${run.report}`];
  await new Promise<void>((resolve) => {
    const child = spawn(process.execPath, args, {
      cwd: ROOT,
      stdio: 'ignore',
      timeout: RUN_MS_MAX,
      env: { ...process.env, MUTATION: run.mutation ?? '' },
    });
    child.on('error', () => resolve());
    child.on('exit', () => resolve());
  });
  try {
    return JSON.parse(readFileSync(run.report, 'utf8'));
  } catch {
    return undefined;
  }
}
