/** Planted bugs of simulations whose runs are short: each is run in this process, in a module graph of its own. */
import { runnerImport } from 'vite';
import { mutationPlugins } from '../../../mutations/plugin.ts';
import type { PlantedBug } from './planted-bug.ts';

/** A change anywhere makes other runs of the same seeds: where the row's does not find the bug any more, others may. */
const OTHER_SEEDS = 60;

export type RunSeed = (seed: number) => Promise<{ readonly faults: readonly string[] }>;

/** The simulation whose `runSeed` a module exports, with the bug in it. */
export async function plantedRun({ name }: PlantedBug, run: string): Promise<RunSeed> {
  const { module } = await runnerImport<{ readonly runSeed: RunSeed }>(run, {
    configFile: false,
    logLevel: 'error',
    plugins: mutationPlugins(name),
    environments: { inline: { resolve: { conditions: ['source'], noExternal: [/^@remora\//] } } },
  });
  return module.runSeed;
}

/** The first seed that breaks one of the bug's properties, its row's before all others. */
export async function firstSeed(run: RunSeed, { seed, properties }: PlantedBug): Promise<number | undefined> {
  const others = Array.from({ length: OTHER_SEEDS }, (_, i) => i + 1).filter((other) => other !== seed);
  for (const one of [seed, ...others]) {
    const { faults } = await run(one);
    if (faults.some((fault) => properties.some((property) => fault.startsWith(property)))) return one;
  }
  return undefined;
}
