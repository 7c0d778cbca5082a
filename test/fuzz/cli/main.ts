/** The command line of fuzzing. It runs the targets in turn, each time from a new seed, until the time is over. */
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import { RUNS_DEFAULT } from '../target.ts';
import { TARGETS } from '../targets.ts';
import type { Chunk, ChunkResult } from './worker.ts';

const USAGE = `pnpm fuzz [options]
  --minutes M      go on for M minutes (default 1)
  --target NAME    this decoder only; part of a name means all that have it
  --seed S         the first seed (default: from the clock; shown)
  --runs N         with --seed: N inputs per target from this very seed, once
  --list           the names of all targets`;

/**
 * A chunk of inputs takes a second or two. One that has used this much CPU time hangs. Elapsed time says little on a
 * busy machine: it only detects an input that waits forever.
 */
const HANG_CPU_MS = 120_000;
const HANG_MS = 1_200_000;
const LOOK_MS = 5_000;
const MEMORY_MIB = 1024;

function parse(args: readonly string[]) {
  return parseArgs({
    args: [...args],
    options: {
      minutes: { type: 'string', default: '1' },
      target: { type: 'string', default: '' },
      seed: { type: 'string' },
      runs: { type: 'string' },
      list: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  }).values;
}

/** The exit code: 0 if nothing was found, 2 for invalid arguments. */
export async function main(args: readonly string[], place: { readonly workerFile: string }): Promise<number> {
  let values: ReturnType<typeof parse>;
  try {
    values = parse(args);
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n\n${USAGE}`);
    return 2;
  }
  const exact = TARGETS.filter(({ name }) => name === values.target);
  const targets = exact.length > 0 ? exact : TARGETS.filter(({ name }) => name.includes(values.target));
  const minutes = Number(values.minutes);
  const seed = values.seed === undefined ? Date.now() % 1_000_000_000 : Number(values.seed);
  const runs = values.runs === undefined ? undefined : Number(values.runs);
  const numbersRight = minutes > 0 && Number.isSafeInteger(seed) && (runs === undefined || Number.isSafeInteger(runs));
  if (values.help || targets.length === 0 || !numbersRight) {
    console.log(USAGE);
    return values.help ? 0 : 2;
  }
  if (values.list) {
    for (const { name } of targets) console.log(name);
    return 0;
  }
  const bench = new Bench(place.workerFile);
  try {
    return await go(bench, targets, { seed, runs, untilMs: performance.now() + minutes * 60_000 });
  } finally {
    await bench.close();
  }
}

async function go(
  bench: Bench,
  targets: typeof TARGETS,
  { seed, runs, untilMs }: { readonly seed: number; readonly runs: number | undefined; readonly untilMs: number },
): Promise<number> {
  let [inputs, round] = [0, 0];
  const failures = new Map<string, string>();
  do {
    for (const target of targets) {
      if (failures.has(target.name)) continue;
      const chunk = { target: target.name, seed: seed + round, runs: runs ?? target.runs ?? RUNS_DEFAULT };
      const { failure } = await bench.run(chunk);
      inputs += chunk.runs;
      if (failure === undefined) continue;
      failures.set(target.name, failure);
      console.log(`\n${failure}\n`);
    }
    round++;
    if (round % 10 === 0) console.log(`${inputs} inputs, ${round} rounds, ${failures.size} decoders with a finding`);
  } while (runs === undefined && performance.now() < untilMs && failures.size < targets.length);
  console.log(
    `${inputs} inputs for ${targets.length} decoders from seed ${seed}: ` +
      (failures.size === 0 ? 'nothing found' : `findings in ${[...failures.keys()].join(', ')}`),
  );
  return failures.size === 0 ? 0 : 1;
}

/** Each call checks whether the work that began before hangs. The CPU times of a process's threads are added up. */
function hangs(found: (error: Error) => void): () => void {
  const [cpu, beganMs] = [process.cpuUsage(), performance.now()];
  return () => {
    const { user, system } = process.cpuUsage(cpu);
    if ((user + system) / 1_000 > HANG_CPU_MS) found(new Error(`no answer in ${HANG_CPU_MS / 1_000} s of computing`));
    else if (performance.now() - beganMs > HANG_MS) found(new Error(`no answer for ${HANG_MS / 1_000} s`));
  };
}

/** One worker at a time. A new one replaces it after it hangs or dies. */
class Bench {
  readonly #file: string;
  #worker: Worker | undefined;
  #settle: (result: ChunkResult | Error) => void = () => {};

  constructor(file: string) {
    this.#file = file;
  }

  async run(chunk: Chunk): Promise<ChunkResult> {
    const worker = this.#worker ?? this.#start();
    const answer = await new Promise<ChunkResult | Error>((resolve) => {
      const timer = setInterval(
        hangs((error) => this.#settle(error)),
        LOOK_MS,
      );
      this.#settle = (result) => {
        clearInterval(timer);
        resolve(result);
      };
      worker.postMessage(chunk);
    });
    if (!(answer instanceof Error)) return answer;
    await this.close();
    const replay = `pnpm fuzz --target ${chunk.target} --seed ${chunk.seed} --runs ${chunk.runs}`;
    return { failure: `${chunk.target}: ${answer.message}\n${replay}` };
  }

  #start(): Worker {
    const worker = new Worker(this.#file, { resourceLimits: { maxOldGenerationSizeMb: MEMORY_MIB } });
    worker.on('message', (result: ChunkResult) => this.#settle(result));
    worker.on('error', (error) => this.#settle(error));
    worker.on('exit', (code) => this.#settle(new Error(`its thread ended with ${code}`)));
    this.#worker = worker;
    return worker;
  }

  async close(): Promise<void> {
    const worker = this.#worker;
    this.#worker = undefined;
    this.#settle = () => {};
    await worker?.terminate();
  }
}
