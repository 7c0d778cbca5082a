/**
 * Tests that a simulation with short runs finds its planted bugs. Each test builds the simulation with one bug and runs
 * the seed that the bug's row names. Other tests run the simulation without bugs.
 */
import { beforeAll, expect, test } from 'vitest';
import type { PlantedBug } from './planted-bug.ts';
import { type Loader, planted, type RunFile } from './planter.ts';

const LOADER = new URL('../cli/load.mjs', import.meta.url).href;

interface ShortResult {
  readonly faults: readonly string[];
}
type RunSeed = (seed: number) => ShortResult | Promise<ShortResult>;

export interface ShortReplay {
  /** The simulation's name in the names of the tests. */
  readonly simulation: string;
  readonly run: RunFile;
  readonly bugs: readonly PlantedBug[];
  /**
   * How many other seeds are tried if the row's seed does not find the bug any more. Any change to the code changes the
   * runs of all seeds.
   */
  readonly otherSeeds: number;
  /** Whether a fault breaks this property. Absent: the fault's text begins with the property. */
  readonly breaks?: (fault: string, property: string) => boolean;
}

/** Declares a test for each bug. */
export function replayShort(replay: ShortReplay): void {
  let loader: Loader;
  beforeAll(async () => {
    loader = await import(LOADER);
  });

  test.for(replay.bugs)(`${replay.simulation} finds $name`, async (bug, { annotate }) => {
    const seed = await firstSeed(await planted<RunSeed>(loader, replay.run, bug), bug, replay);
    expect(seed, 'no seed finds it any more').toBeDefined();
    if (seed !== bug.seed) await annotate(`found by seed ${seed}, not ${bug.seed}: write that into its row`);
  });
}

/** Finds the first seed that breaks one of the bug's properties. The row's seed is tried first. */
async function firstSeed(
  run: RunSeed,
  { seed, properties }: PlantedBug,
  replay: ShortReplay,
): Promise<number | undefined> {
  const { otherSeeds, breaks = (fault, property) => fault.startsWith(property) } = replay;
  const others = Array.from({ length: otherSeeds }, (_, i) => i + 1).filter((other) => other !== seed);
  for (const one of [seed, ...others]) {
    const { faults } = await run(one);
    if (faults.some((fault) => properties.some((property) => breaks(fault, property)))) return one;
  }
  return undefined;
}
