/**
 * Tests that a simulation finds its planted bugs, each in the promise that it breaks.
 *
 * P1. Of each bug only the seed that its row names is run, no longer than it takes. Unless other tests run that seed as
 *     long without the bug, it is run here without it too, and must pass.
 *     A bug that a unit test finds too is left to `command`, where the table is long.
 * P2. A change anywhere makes other runs of the same seeds. A bug that its seed does not find any more is looked for in
 *     others, few over all bugs; `command` finds the seeds anew.
 */
import { beforeAll, expect, test } from 'vitest';
import type { SimResult } from '../cli/simulation.ts';
import type { PlantedBug, Planting } from './planted-bug.ts';
import { changeOf, finds, inFull, type Loader, planted, type Replayed, type RunSeed } from './planter.ts';

const LOADER = new URL('../cli/load.mjs', import.meta.url).href;

export interface Replay {
  readonly planting: Planting;
  /** Which of the bugs that no unit test finds: those of the same run are in one half; absent: all bugs. (P1) */
  readonly half?: 0 | 1;
  /** Seeds up to here are run without bugs by other tests. (P1) */
  readonly seedsInTest: number;
  /** Other seeds that may be run, over all bugs. (P2) */
  readonly spareSeeds: number;
}

/** Declares a test for each bug. */
export function replayPlanted({ planting, half, seedsInTest, spareSeeds }: Replay): void {
  const run = { simulation: planting.simulation, name: 'run' };
  let loader: Loader;
  let withoutBug: Promise<RunSeed> | undefined;
  let spare = spareSeeds;

  beforeAll(async () => {
    loader = await import(LOADER);
  });

  /** The row's seed first, then others while there are any left. (P2) */
  function* runsFor(bug: PlantedBug): Generator<Replayed> {
    yield bug;
    for (let other = 1; spare > 0; other++) {
      if (other === bug.seed) continue;
      spare--;
      yield inFull({ ...bug, seed: other });
    }
  }

  /** Of the same run without a bug; each is made once. (P1) */
  const harmless = new Map<string, Promise<string>>();
  function failureWithoutBug(replayed: Replayed): Promise<string> {
    const name = runOf(replayed);
    const known = harmless.get(name) ?? runHarmless(replayed.seed, changeOf(replayed));
    harmless.set(name, known);
    return known;
  }
  async function runHarmless(...args: Parameters<RunSeed>): Promise<string> {
    withoutBug ??= planted(loader, run);
    return failureOf(await (await withoutBug)(...args));
  }

  const ofSimulation = planting.bugs.filter(({ caughtBy }) => caughtBy === undefined);
  const bugs = half === undefined ? planting.bugs : halves(ofSimulation)[half];
  test.each(bugs)('$name', async (bug) => {
    const runSeed = await planted(loader, run, bug);
    let found: Replayed | undefined;
    for (const replayed of runsFor(bug)) {
      if (!(await finds(runSeed, replayed, bug))) continue;
      found = replayed;
      break;
    }
    expect(found, `no seed finds it any more: ${planting.command} ${bug.name}`).toBeDefined();
    if (found === undefined) return;
    const runElsewhere = found.seed <= seedsInTest && found.runMs === undefined && found.faults === undefined;
    if (!runElsewhere) expect(await failureWithoutBug(found)).toBe(''); // P1
  });
}

function runOf({ seed, runMs, faults }: Replayed): string {
  return `${seed}, ${runMs}, ${faults}`;
}

/** Two parts of about the same number. */
function halves(bugs: readonly PlantedBug[]): readonly [readonly PlantedBug[], readonly PlantedBug[]] {
  const parts: [PlantedBug[], PlantedBug[]] = [[], []];
  const byRun = new Map<string, PlantedBug[]>();
  for (const bug of bugs) byRun.set(runOf(bug), [...(byRun.get(runOf(bug)) ?? []), bug]);
  for (const group of [...byRun.values()].sort((a, b) => b.length - a.length)) {
    const [first, second] = parts;
    (second.length < first.length ? second : first).push(...group);
  }
  return parts;
}

function failureOf({ failure }: SimResult): string {
  return failure === undefined ? '' : `${failure.property}: ${failure.detail}`;
}
