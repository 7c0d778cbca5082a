/** `pnpm chaos`: the command. */
import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Finding } from '../../checkers/index.ts';
import { FAULTS } from '../faults/index.ts';
import { judgeRound } from '../judges/judge-round.ts';
import { readRounds } from '../judges/read-rounds.ts';
import { VisitsJudge } from '../judges/visits.ts';
import { compactionOf } from '../judges/watches.ts';
import { pageOf } from '../report/page.ts';
import { summaryOf } from '../report/summary.ts';
import { type ChaosOptions, type ChaosResult, runChaos } from '../run.ts';
import type { Releases } from '../upgrade/releases.ts';
import { type Settings, settingsOf, USAGE } from './settings.ts';

const REPORT = 'chaos-report.html';
const RUN = 'run';

/** Resolves to the exit code. `root`: the repository. `programs`: the folder of the compiled programs. */
export async function main(
  args: readonly string[],
  { root, programs, releases }: { readonly root: string; readonly programs: string; readonly releases?: Releases },
): Promise<number> {
  const kinds = FAULTS.map(({ kind }) => kind);
  let settings: Settings;
  try {
    settings = settingsOf(args, { kinds, chance: () => Date.now() % 1_000_000 });
  } catch (error) {
    console.error(`chaos: ${error instanceof Error ? error.message : String(error)}\n\n${USAGE}`);
    return 2;
  }
  if (settings.help || settings.list) {
    console.log(settings.help ? USAGE : kinds.join('\n'));
    return 0;
  }
  if (settings.judge !== undefined) return judgeAgain(resolve(settings.judge));
  const dir = resolve(settings.dir ?? join(root, '.remora/chaos', `seed-${settings.seed}`));
  if (!isEmpty(dir)) {
    console.error(`chaos: ${dir} is not empty; name another one by --dir, or remove it`);
    return 2;
  }
  const result = await run(settings, { dir: join(dir, RUN), programs, ...(releases && { releases }) });
  writeFileSync(join(dir, REPORT), pageOf(result, join(root, 'test/chaos/report')));
  console.log(summaryOf(result));
  const code = exitCode(result);
  if (code === 0 && !settings.keep) rmSync(join(dir, RUN), { recursive: true, force: true });
  else console.log(`data, logs and journals are kept in ${join(dir, RUN)}`);
  console.log(`the report: ${join(dir, REPORT)}`);
  return code;
}

function run(settings: Settings, given: Pick<ChaosOptions, 'dir' | 'programs' | 'releases'>): Promise<ChaosResult> {
  const { seed, minutes, course, nodes, clients, thinkMs, only, auth } = settings;
  console.log(`chaos: ${minutes} minutes, seed ${seed}${auth ? ', with authentication' : ''}`);
  const interrupted = new AbortController();
  const interrupt = (): void => {
    if (interrupted.signal.aborted) process.exit(130);
    console.log('ending; once more ends it at once');
    interrupted.abort();
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, interrupt);
  return runChaos({
    ...{ ...given, seed, minutes, course, nodes, clients, thinkMs, auth, signal: interrupted.signal },
    ...(only !== undefined && { only }),
    say: (line) => console.log(`  ${line}`),
  });
}

/** Judges as during the run, except for what was left at its end. */
function judgeAgain(dir: string): number {
  const rounds = readRounds(dir);
  const compacted = Math.max(0, ...rounds.map(compactionOf));
  const visits = new VisitsJudge();
  let found = 0;
  const tell = (when: string, findings: readonly Finding[]): void => {
    found += findings.length;
    for (const { result, property, detail } of findings) console.log(`${result}: ${property}: ${when}: ${detail}`);
  };
  for (const round of rounds) {
    tell(`round ${round.r}`, [...judgeRound(round, { compacted }), ...visits.take(round)]);
  }
  tell('the end', visits.finish());
  const operations = rounds.reduce((sum, round) => sum + round.operations.length, 0);
  console.log(
    `${rounds.length} rounds, ${operations} operations: ${found === 0 ? 'every promise held' : `${found} findings`}`,
  );
  return found === 0 && rounds.length > 0 ? 0 : 1;
}

function exitCode({ findings, judged }: ChaosResult): number {
  return findings.length === 0 && judged !== undefined ? 0 : 1;
}

function isEmpty(dir: string): boolean {
  mkdirSync(dir, { recursive: true });
  return statSync(dir).isDirectory() && readdirSync(dir).length === 0;
}
