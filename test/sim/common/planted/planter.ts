/** Builds a simulation with a planted bug in it. A build takes less than a second. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Mutation, mutate } from '../../../mutations/mutation.ts';
import type { SimResult } from '../cli/simulation.ts';
import type { PlantedBug } from './planted-bug.ts';

/** Runs a seed. `change` makes its faults end earlier, or restricts their kinds. */
export type RunSeed = (seed: number, change?: Pick<PlantedBug, 'runMs' | 'faults'>) => Promise<SimResult>;

/** The interface of `test/sim/common/cli/load.mjs`. */
export interface Loader {
  bundle(simulation: string, what: Build): Promise<Built>;
  importFrom(dir: string, name: string): Promise<unknown>;
}

interface Build {
  /** Relative to the folder of the simulation. */
  readonly files: readonly string[];
  /** A source file, relative to the root of the repository, that is replaced in this build. */
  readonly changed?: { readonly file: string; readonly text: string };
  readonly sourceMaps?: boolean;
}

interface Built {
  readonly dir: string;
  readonly remove: () => void;
}

/** A file that exports `runSeed`. */
export interface RunFile {
  /** The folder below test/sim. */
  readonly simulation: string;
  /** In that folder. */
  readonly name: string;
}

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));

/** The `runSeed` of a simulation, with this bug or without any. */
export async function planted<Run = RunSeed>(loader: Loader, run: RunFile, bug?: Mutation): Promise<Run> {
  const { simulation, name } = run;
  const changed = bug && { file: bug.file, text: mutate(bug, readFileSync(join(ROOT, bug.file), 'utf8')) };
  // Nobody reads the traces of a bug that is there on purpose.
  const build = { files: [`${name}.ts`], sourceMaps: false, ...(changed && { changed }) };
  const { dir, remove } = await loader.bundle(simulation, build);
  try {
    const module = (await loader.importFrom(dir, name)) as { readonly runSeed: Run };
    return module.runSeed;
  } finally {
    remove(); // all of it is loaded
  }
}

/** One run of a seed. */
export type Replayed = Pick<PlantedBug, 'seed' | 'runMs' | 'faults'>;

/** The same run at full length. */
export function inFull({ seed, faults }: Replayed): Replayed {
  return { seed, ...(faults !== undefined && { faults }) };
}

/** How the run differs from the usual run of the seed. */
export function changeOf({ runMs, faults }: Replayed): Pick<PlantedBug, 'runMs' | 'faults'> {
  return { ...(runMs !== undefined && { runMs }), ...(faults !== undefined && { faults }) };
}

/** Whether this run breaks one of the bug's properties. `otherwise` is called if the run breaks something else. */
export async function finds(
  run: RunSeed,
  replayed: Replayed,
  { properties }: PlantedBug,
  otherwise: (broken: string) => void = () => {},
): Promise<boolean> {
  const { failure } = await run(replayed.seed, changeOf(replayed));
  if (failure === undefined) return false;
  if (properties.includes(failure.property)) return true;
  otherwise(failure.property);
  return false;
}
