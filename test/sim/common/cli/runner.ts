/** The command line of a simulation. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { FaultEvent } from '../faults/fault.ts';
import { shrink } from '../shrink.ts';
import { type Settings, settingsOf, usage } from './settings.ts';
import type { Job, SimResult, Simulation } from './simulation.ts';
import {
  addResult,
  neverFired,
  newTotals,
  progressLine,
  readTotals,
  seedsOf,
  summary,
  type Totals,
  writeTotals,
} from './totals.ts';

/** Fewer seeds need not meet every kind of fault. */
const SEEDS_FOR_ALL_KINDS = 100;
/** How long a failing schedule is shrunk, in real time. */
const SHRINK_MS_MAX = 180_000;
const PROGRESS_MS = 2_000;

export interface Place {
  readonly workerFile: string;
  readonly stateDir: string;
}

/** The exit code: 0 if every promise held, and every kind of fault happened; 2 for invalid arguments. */
export async function runSimulation(simulation: Simulation, args: readonly string[], place: Place): Promise<number> {
  let settings: Settings;
  let only: ReadonlySet<string> | undefined;
  try {
    settings = settingsOf(args);
    if (settings.schedule !== undefined) refuseSchedule(simulation);
    only = kindsOf(simulation, settings.faults);
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n\n${usage(simulation.command)}`);
    return 2;
  }
  if (settings.help) {
    console.log(usage(simulation.command));
    return 0;
  }
  const { mutation, faults, seed } = settings;
  const suffix = `${mutation === undefined ? '' : ` --mutation ${mutation}`}${faults === undefined ? '' : ` --faults '${faults}'`}`;
  const session: Session = { simulation, only, suffix, place, historiesDir: settings.histories };
  if (settings.single) return one(session, seed, settings.schedule);
  const { faultKinds } = simulation;
  const file = join(place.stateDir, `state${mutation === undefined ? '' : `-${mutation}`}.json`);
  const before = settings.resume ? readTotals(file, faultKinds) : undefined;
  const totals =
    before === undefined ? newTotals(seed, settings.step, [...(only ?? faultKinds)]) : goOn(before, settings);
  await many(session, totals, {
    file,
    end: totals.next + settings.seeds * totals.step,
    untilMs: Date.now() + settings.minutes * 60_000,
    jobs: settings.jobs,
    stopAtFailure: !settings.keepGoing,
  });
  return conclude(session, totals);
}

function refuseSchedule({ draw }: Simulation): void {
  if (draw === undefined) throw new Error('its faults follow from the course of a run: --schedule is not for it');
}

/** A run that stopped at a failure continues with the failed seed: by now it may pass. */
function goOn(before: Totals, { keepGoing }: Settings): Totals {
  if (keepGoing) return before;
  return { ...before, next: Math.min(before.next, ...before.failures.map(({ seed }) => seed)), failures: [] };
}

/** What stays the same over a call of the command. */
interface Session {
  readonly simulation: Simulation;
  /** Kinds of faults that may happen; absent: all. */
  readonly only: ReadonlySet<string> | undefined;
  /** Options that a replay needs too. */
  readonly suffix: string;
  readonly place: Place;
  /** Where histories are written, also of a passing run; absent: only of a failing one, to the usual place. */
  readonly historiesDir: string | undefined;
}

function kindsOf({ faultKinds, draw }: Simulation, given: string | undefined): ReadonlySet<string> | undefined {
  if (given === undefined) return undefined;
  if (draw === undefined) throw new Error('its faults follow from the course of a run: none can be left out');
  const kinds = given.split(',').map((kind) => kind.trim());
  const unknown = kinds.find((kind) => !faultKinds.includes(kind));
  if (unknown !== undefined) throw new Error(`there is no fault '${unknown}'; there are: ${faultKinds.join(', ')}`);
  return new Set(kinds);
}

function jobOf({ simulation, only }: Session, seed: number): Job {
  if (only === undefined || simulation.draw === undefined) return { seed };
  return { seed, schedule: simulation.draw(seed).filter(({ kind }) => only.has(kind)) };
}

interface ManyOptions {
  readonly file: string;
  readonly end: number;
  readonly untilMs: number;
  readonly jobs: number;
  readonly stopAtFailure: boolean;
}

/** Runs seeds on several threads. The seeds counted as done always form a run without a gap. */
async function many(session: Session, totals: Totals, options: ManyOptions): Promise<void> {
  const began = Date.now();
  const firstSeed = totals.next;
  const secondsBefore = totals.seconds;
  const done = new Map<number, SimResult>();
  const { step } = totals;
  let given = totals.next;
  const more = (): boolean =>
    given < options.end && Date.now() < options.untilMs && !(options.stopAtFailure && totals.failures.length > 0);
  const take = (result: SimResult): void => {
    done.set(result.seed, result);
    for (let next = done.get(totals.next); next !== undefined; next = done.get(totals.next)) {
      done.delete(totals.next);
      totals.next += step;
      addResult(totals, next);
    }
  };
  const seconds = (): number => (Date.now() - began) / 1_000;
  const progress = setInterval(() => {
    totals.seconds = secondsBefore + seconds();
    writeTotals(options.file, totals);
    console.log(progressLine(totals, (totals.next - firstSeed) / step, seconds()));
  }, PROGRESS_MS);
  const worker = async (): Promise<void> => {
    const thread = new Worker(session.place.workerFile);
    try {
      while (more()) {
        const seed = given;
        given += step;
        take(await ask(thread, jobOf(session, seed)));
      }
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
  console.log(progressLine(totals, (totals.next - firstSeed) / step, seconds()));
}

function ask(thread: Worker, job: Job): Promise<SimResult> {
  return new Promise((resolve, reject) => {
    const end = (settle: () => void): void => {
      thread.off('message', onMessage);
      thread.off('error', onError);
      settle();
    };
    const onMessage = (result: SimResult): void => end(() => resolve(result));
    const onError = (error: unknown): void => end(() => reject(error));
    thread.on('message', onMessage);
    thread.on('error', onError);
    thread.postMessage(job);
  });
}

async function conclude(session: Session, totals: Totals): Promise<number> {
  console.log(summary(totals));
  const [first] = totals.failures;
  for (const { seed, detail } of totals.failures.slice(1, 10)) console.log(`seed ${seed}: ${detail.split('\n')[0]}`);
  if (first !== undefined) {
    const code = await one(session, first.seed, undefined);
    // Not a pass: the same seed must give the same run, here as in the worker.
    if (code === 0) console.log(`but in the run over many seeds, seed ${first.seed} failed: ${first.detail}`);
    return 1;
  }
  const faults = seedsOf(totals) >= SEEDS_FOR_ALL_KINDS ? judge(session.simulation, totals) : [];
  for (const fault of faults) console.log(fault);
  return faults.length === 0 ? 0 : 1;
}

/** Why a run over many seeds fails although every promise held. */
function judge(simulation: Simulation, totals: Totals): readonly string[] {
  const missing = neverFired(totals);
  return [
    ...(missing.length > 0 ? [`never happened: ${missing.join(', ')}`] : []),
    ...(simulation.judge?.(totals.figures) ?? []),
  ];
}

/** Runs one seed; if it fails, shows the failure, and a shrunk schedule. */
async function one(session: Session, seed: number, file: string | undefined): Promise<number> {
  const { simulation, suffix } = session;
  const given: readonly FaultEvent[] | undefined =
    file === undefined ? undefined : JSON.parse(readFileSync(file, 'utf8'));
  const job = given === undefined ? jobOf(session, seed) : { seed, schedule: given };
  const result = await simulation.run({ ...job, histories: true });
  const { failure, hash, counts, fired, simulatedMs } = result;
  if (failure === undefined) {
    console.log(
      `seed ${seed}: every promise held in ${(simulatedMs / 1_000).toFixed(1)} s of virtual time, trace ${hash}`,
    );
    console.log(JSON.stringify({ ...counts, faults: Object.fromEntries(fired) }));
    if (session.historiesDir !== undefined) writeHistories(result, session.historiesDir);
    return 0;
  }
  console.log(`\nseed ${seed} failed: ${failure.detail}\n\n${failure.last.join('\n')}\n`);
  writeHistories(result, session.historiesDir ?? join(session.place.stateDir, 'histories'));
  console.log(`replay: ${simulation.command} --seed ${seed}${suffix}`);
  if (given === undefined && simulation.draw !== undefined) await showShrunk(session, result, failure.property);
  return 1;
}

/** For other checkers, or for this one again (test/checkers/main.mjs). */
function writeHistories({ seed, histories = [] }: SimResult, dir: string): void {
  if (histories.length === 0) return;
  mkdirSync(dir, { recursive: true });
  for (const { name, text } of histories) {
    const file = join(dir, `seed-${seed}-${name}.jsonl`);
    writeFileSync(file, text);
    console.log(`history: ${file}`);
  }
}

async function showShrunk({ simulation, place, suffix }: Session, failed: SimResult, property: string): Promise<void> {
  const { seed, schedule } = failed;
  const target = join(place.stateDir, `seed-${seed}.json`);
  const untilMs = Date.now() + SHRINK_MS_MAX;
  let shownMs = Date.now();
  mkdirSync(place.stateDir, { recursive: true });
  const { events, runs } = await shrink({
    run: (some) => simulation.run({ seed, schedule: some }),
    events: schedule,
    property,
    mayGoOn: () => Date.now() < untilMs,
    progress: ({ events: left, runs: done }) => {
      if (Date.now() < shownMs + PROGRESS_MS) return;
      shownMs = Date.now();
      console.log(`making the faults fewer: ${left.length} of ${schedule.length} after ${done} runs`);
    },
  });
  writeFileSync(target, JSON.stringify(events, undefined, 1));
  console.log(`\n${events.length} of its ${schedule.length} faults are enough (${runs} runs):`);
  for (const { atMs, kind, lastsMs } of events) console.log(`  at ${atMs} ms for ${lastsMs} ms: ${kind}`);
  console.log(`replay: ${simulation.command} --seed ${seed} --schedule ${target}${suffix}`);
}
