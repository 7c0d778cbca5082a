// Each planted bug is found by the simulation, in the promise that it breaks; the same runs pass without it.
import { describe, expect, test } from 'vitest';
import { SIM_MUTATIONS } from '../../../packages/raft/test/mutations/sim-mutations.ts';
import { runSeed } from './run.ts';

/** A change anywhere makes other runs of the same seeds: the bug must show in one of so many. */
const SEEDS_MAX = 40;

/** What `cli/load.mjs` has. */
interface Loader {
  bundle(mutation: string): Promise<{ readonly dir: string; readonly remove: () => void }>;
  importFrom(dir: string, name: string): Promise<{ readonly runSeed: typeof runSeed }>;
}

const LOADER = new URL('./cli/load.mjs', import.meta.url).href;

type Found = { readonly seed: number; readonly property: string };

/** The first run from `first` on that fails. */
async function firstFailure(
  run: typeof runSeed,
  first: number,
  properties: readonly string[],
): Promise<Found | undefined> {
  for (let seed = first; seed < first + SEEDS_MAX; seed++) {
    const { failure } = await run(seed);
    if (failure !== undefined && properties.includes(failure.property)) return { seed, property: failure.property };
  }
  return undefined;
}

describe('the simulation finds', () => {
  test.each(SIM_MUTATIONS)('$name', { timeout: 120_000 }, async ({ name, foundBy, properties }) => {
    const loader: Loader = await import(LOADER);
    const { dir, remove } = await loader.bundle(name);
    try {
      const mutated = await loader.importFrom(dir, 'run');
      const found = await firstFailure(mutated.runSeed, foundBy[0], properties);
      expect(found).toBeDefined();
      if (found !== undefined) expect((await runSeed(found.seed)).failure).toBeUndefined();
    } finally {
      remove();
    }
  });
});
