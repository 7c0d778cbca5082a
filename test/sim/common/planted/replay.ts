/**
 * Tests that a simulation finds its planted bugs, and that each bug breaks the expected promise.
 *
 * P1. For each bug, only the seed that its row names is run, and no longer than necessary. Unless other tests run that
 *     seed for as long without the bug, it is also run here without the bug and must pass. If the table is long,
 *     `command` alone runs the bugs that a unit test finds too.
 * P2. Any change to the code changes the runs of all seeds. If a bug's seed does not find the bug any more, a few other
 *     seeds are tried. Their number is limited over all bugs. `command` finds new seeds.
 */
import { beforeAll, expect, test } from 'vitest';
import type { SimResult } from '../cli/simulation.ts';
import type { PlantedBug, Planting } from './planted-bug.ts';
import { changeOf, finds, inFull, type Loader, planted, type Replayed, type RunSeed } from './planter.ts';

const LOADER = new URL('../cli/load.mjs', import.meta.url).href;

export interface Replay {
  readonly planting: Planting;
  /**
   * Selects one half of the bugs that no unit test finds. Bugs with the same run are in the same half. Absent: all
   * bugs. (P1)
   */
  readonly half?: 0 | 1;
  /** Other tests run the seeds up to this one without bugs. (P1) */
  readonly seedsInTest: number;
  /** How many other seeds may be run, over all bugs. (P2) */
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

  /** The row's seed first, then other seeds while any are left. (P2) */
  function* runsFor(bug: PlantedBug): Generator<Replayed> {
    yield bug;
    for (let other = 1; spare > 0; other++) {
      if (other === bug.seed) continue;
      spare--;
      yield inFull({ ...bug, seed: other });
    }
  }

  /** The same runs without a bug. Each is made once. (P1) */
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

/** Splits the bugs into two parts of about the same size. */
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
