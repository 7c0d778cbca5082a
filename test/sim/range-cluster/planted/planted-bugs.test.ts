import { fileURLToPath } from 'node:url';
import { runnerImport } from 'vite';
import { expect, test } from 'vitest';
import { mutationPlugins } from '../../../mutations/plugin.ts';
import type { PlantedBug } from '../../common/planted/planted-bug.ts';
import type { RangePlan } from '../bed.ts';
import { MERGES } from '../plans.ts';
import type { RunResult } from '../run.ts';
import { MERGE_BUGS } from './bugs.ts';

const RUN = fileURLToPath(new URL('../run.ts', import.meta.url));
/** A change anywhere makes other runs of the same seeds: where the row's does not find the bug any more, others may. */
const OTHER_SEEDS = Number(process.env.PLANTED_SEEDS ?? 40);

type RunSeed = (seed: number, plan: RangePlan) => Promise<RunResult>;

/** The simulation with the bug in it, in a module graph of its own. */
async function planted({ name }: PlantedBug): Promise<RunSeed> {
  const { module } = await runnerImport<{ readonly runSeed: RunSeed }>(RUN, {
    configFile: false,
    logLevel: 'error',
    plugins: mutationPlugins(name),
    environments: { inline: { resolve: { conditions: ['source'], noExternal: [/^@remora\//] } } },
  });
  return module.runSeed;
}

/** What a run finds: in what clients were told and replicas have, or that the product stops at a broken invariant. */
async function findings(run: RunSeed, seed: number): Promise<readonly string[]> {
  try {
    return (await run(seed, MERGES)).faults;
  } catch (error) {
    return [String(error)];
  }
}

async function firstSeed(run: RunSeed, { seed, properties }: PlantedBug): Promise<number | undefined> {
  const others = Array.from({ length: OTHER_SEEDS }, (_, i) => i + 1).filter((other) => other !== seed);
  for (const one of [seed, ...others]) {
    const found = await findings(run, one);
    if (found.some((fault) => properties.some((property) => fault.includes(property)))) return one;
  }
  return undefined;
}

test.each(MERGE_BUGS)('the simulation of merges finds $name', { timeout: 240_000 }, async (bug) => {
  const seed = await firstSeed(await planted(bug), bug);
  expect(seed, 'no seed finds it any more').toBeDefined();
  if (seed !== bug.seed) console.warn(`${bug.name} is found by seed ${seed}: write that into its row`);
});
