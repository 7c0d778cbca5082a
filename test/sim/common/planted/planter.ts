/** A simulation with a planted bug in it: it is built anew with the bug, which takes a part of a second. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Mutation, mutate } from '../../../mutations/mutation.ts';
import type { SimResult } from '../cli/simulation.ts';
import type { PlantedBug } from './planted-bug.ts';

/** Runs a seed; with a change where its faults are to last shorter than they do, or to be of these kinds only. */
export type RunSeed = (seed: number, change?: Pick<PlantedBug, 'runMs' | 'faults'>) => Promise<SimResult>;

/** What `test/sim/common/cli/load.mjs` has. */
export interface Loader {
  bundle(simulation: string, what: Build): Promise<Built>;
  importFrom(dir: string, name: string): Promise<unknown>;
}

interface Build {
  /** From the folder of the simulation. */
  readonly files: readonly string[];
  /** A source file, from the root of the repository, that has another text in this build. */
  readonly changed?: { readonly file: string; readonly text: string };
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

/** The `runSeed` of a simulation, with that bug in it or without any. */
export async function planted<Run = RunSeed>(loader: Loader, run: RunFile, bug?: Mutation): Promise<Run> {
  const { simulation, name } = run;
  const changed = bug && { file: bug.file, text: mutate(bug, readFileSync(join(ROOT, bug.file), 'utf8')) };
  const { dir, remove } = await loader.bundle(simulation, { files: [`${name}.ts`], ...(changed && { changed }) });
  try {
    const module = (await loader.importFrom(dir, name)) as { readonly runSeed: Run };
    return module.runSeed;
  } finally {
    remove(); // all of it is loaded
  }
}

/** One run of a seed. */
export type Replayed = Pick<PlantedBug, 'seed' | 'runMs' | 'faults'>;

/** The same for as long as any run. */
export function inFull({ seed, faults }: Replayed): Replayed {
  return { seed, ...(faults !== undefined && { faults }) };
}

/** What is changed about the run of the seed. */
export function changeOf({ runMs, faults }: Replayed): Pick<PlantedBug, 'runMs' | 'faults'> {
  return { ...(runMs !== undefined && { runMs }), ...(faults !== undefined && { faults }) };
}

/** Whether this run breaks what the bug may break; `otherwise` is told of a run that breaks something else. */
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
