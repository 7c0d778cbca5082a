/** The command line of the simulation. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import type { FaultEvent } from '../faults/fault.ts';
import { type RunResult, runSeed } from '../run.ts';
import { shrink } from '../shrink.ts';
import {
  addResult,
  neverFired,
  newTotals,
  progressLine,
  readTotals,
  summary,
  type Totals,
  writeTotals,
} from './totals.ts';

const USAGE = `pnpm sim:raft [options]
  --seeds N          run N seeds (default 200)
  --seed S           the first seed (default 1); alone: run this one seed, and shrink it if it fails
  --minutes M        stop after M minutes
  --jobs J           threads (default 1)
  --resume           go on where the last run stopped
  --schedule FILE    with --seed: the faults of a file in place of the drawn ones
  --mutation NAME    with a planted bug of packages/raft/test/mutations
  --keep-going       do not stop at the first failure`;

/** Fewer seeds need not meet every kind of fault. */
const SEEDS_FOR_ALL_KINDS = 100;
const PROGRESS_MS = 2_000;

interface Place {
  readonly workerFile: string;
  readonly stateDir: string;
}

/** The exit code: 0 when every promise held, and every kind of fault was met. */
export async function main(args: readonly string[], place: Place): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seeds: { type: 'string' },
      seed: { type: 'string' },
      minutes: { type: 'string' },
      jobs: { type: 'string', default: '1' },
      resume: { type: 'boolean', default: false },
      schedule: { type: 'string' },
      mutation: { type: 'string' },
      'keep-going': { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  const suffix = values.mutation === undefined ? '' : ` --mutation ${values.mutation}`;
  if (values.seed !== undefined && values.seeds === undefined && values.minutes === undefined) {
    return one(Number(values.seed), { schedule: values.schedule, suffix, stateDir: place.stateDir });
  }
  const file = join(place.stateDir, `state${values.mutation === undefined ? '' : `-${values.mutation}`}.json`);
  const totals = (values.resume ? readTotals(file) : undefined) ?? newTotals(Number(values.seed ?? 1));
  const minutes = values.minutes === undefined ? Number.POSITIVE_INFINITY : Number(values.minutes);
  const seeds = Number(values.seeds ?? (values.minutes === undefined ? 200 : 1e9));
  await many(totals, {
    file,
    end: totals.next + seeds,
    untilMs: Date.now() + minutes * 60_000,
    jobs: Math.max(1, Number(values.jobs)),
    stopAtFailure: !values['keep-going'],
    workerFile: place.workerFile,
  });
  return conclude(totals, suffix, place);
}

interface ManyOptions {
  readonly file: string;
  readonly end: number;
  readonly untilMs: number;
  readonly jobs: number;
  readonly stopAtFailure: boolean;
  readonly workerFile: string;
}

/** Runs seeds on several threads. What is counted as done is always a run of seeds without a gap. */
async function many(totals: Totals, options: ManyOptions): Promise<void> {
  const began = Date.now();
  const firstSeed = totals.next;
  const secondsBefore = totals.seconds;
  const done = new Map<number, Omit<RunResult, 'schedule'>>();
  let given = totals.next;
  const more = (): boolean =>
    given < options.end && Date.now() < options.untilMs && !(options.stopAtFailure && totals.failures.length > 0);
  const take = (result: Omit<RunResult, 'schedule'>): void => {
    done.set(result.seed, result);
    for (let next = done.get(totals.next); next !== undefined; next = done.get(totals.next)) {
      done.delete(totals.next);
      totals.next++;
      addResult(totals, next);
    }
  };
  const seconds = (): number => (Date.now() - began) / 1_000;
  const progress = setInterval(() => {
    totals.seconds = secondsBefore + seconds();
    writeTotals(options.file, totals);
    console.log(progressLine(totals, totals.next - firstSeed, seconds()));
  }, PROGRESS_MS);
  const worker = async (): Promise<void> => {
    const thread = new Worker(options.workerFile);
    try {
      while (more()) take(await ask(thread, given++));
    } finally {
      await thread.terminate();
    }
  };
  try {
    await Promise.all(Array.from({ length: options.jobs }, worker));
  } finally {
    clearInterval(progress);
    totals.seconds = secondsBefore + seconds();
    writeTotals(options.file, totals);
  }
  console.log(progressLine(totals, totals.next - firstSeed, seconds()));
}

function ask(thread: Worker, seed: number): Promise<Omit<RunResult, 'schedule'>> {
  return new Promise((resolve, reject) => {
    const end = (settle: () => void): void => {
      thread.off('message', onMessage);
      thread.off('error', onError);
      settle();
    };
    const onMessage = (result: Omit<RunResult, 'schedule'>): void => end(() => resolve(result));
    const onError = (error: unknown): void => end(() => reject(error));
    thread.on('message', onMessage);
    thread.on('error', onError);
    thread.postMessage(seed);
  });
}

async function conclude(totals: Totals, suffix: string, place: Place): Promise<number> {
  console.log(summary(totals));
  const [first] = totals.failures;
  for (const { seed, detail } of totals.failures.slice(1, 10)) console.log(`seed ${seed}: ${detail.split('\n')[0]}`);
  if (first !== undefined) return one(first.seed, { schedule: undefined, suffix, stateDir: place.stateDir });
  const missing = totals.next - totals.first >= SEEDS_FOR_ALL_KINDS ? neverFired(totals) : [];
  if (missing.length > 0) console.log(`never happened: ${missing.join(', ')}`);
  return missing.length === 0 ? 0 : 1;
}

interface OneOptions {
  readonly schedule: string | undefined;
  readonly suffix: string;
  readonly stateDir: string;
}

/** Runs one seed; if it fails, shows how, and what is left of its faults. */
async function one(seed: number, { schedule: file, suffix, stateDir }: OneOptions): Promise<number> {
  const given: readonly FaultEvent[] | undefined =
    file === undefined ? undefined : JSON.parse(readFileSync(file, 'utf8'));
  const { failure, schedule, hash, counts, fired, simulatedMs } = await runSeed(seed, given);
  if (failure === undefined) {
    console.log(
      `seed ${seed}: every promise held in ${(simulatedMs / 1_000).toFixed(1)} s of virtual time, trace ${hash}`,
    );
    console.log(JSON.stringify({ ...counts, faults: Object.fromEntries(fired) }));
    return 0;
  }
  console.log(`\nseed ${seed} failed: ${failure.detail}\n\n${failure.last.join('\n')}\n`);
  console.log(`replay: pnpm sim:raft --seed ${seed}${suffix}`);
  if (given !== undefined) return 1;
  const { events, runs } = await shrink(seed, schedule, failure.property);
  mkdirSync(stateDir, { recursive: true });
  const target = join(stateDir, `seed-${seed}.json`);
  writeFileSync(target, JSON.stringify(events, undefined, 1));
  console.log(`\n${events.length} of its ${schedule.length} faults are enough (${runs} runs):`);
  for (const { atMs, kind, lastsMs } of events) console.log(`  at ${atMs} ms for ${lastsMs} ms: ${kind}`);
  console.log(`replay: pnpm sim:raft --seed ${seed} --schedule ${target}${suffix}`);
  return 1;
}
