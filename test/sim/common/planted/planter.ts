/**
 * A simulation with a planted bug in it. It is built once; bugs are put into the built program, and only where that is
 * not possible (patch.ts B2) it is built anew with the bug.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { patchBuilt } from '../../../mutations/patch.ts';
import type { SimResult } from '../cli/simulation.ts';
import type { PlantedBug } from './planted-bug.ts';

/** Runs a seed; with a change where its faults are to last shorter than they do, or to be of these kinds only. */
export type RunSeed = (seed: number, change?: Pick<PlantedBug, 'runMs' | 'faults'>) => Promise<SimResult>;

/** What `test/sim/common/cli/load.mjs` has. */
export interface Loader {
  bundle(simulation: string, mutation?: string): Promise<Built>;
  importFrom(dir: string, name: string): Promise<{ readonly runSeed: RunSeed }>;
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

interface Built {
  readonly dir: string;
  readonly remove: () => void;
}

export interface Planter {
  /** The simulation without any bug. */
  readonly plain: RunSeed;
  /** The simulation with that bug. */
  plant(bug: PlantedBug): Promise<RunSeed>;
  /** Takes away what was built. */
  close(): void;
}

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));

export async function openPlanter(loader: Loader, simulation: string): Promise<Planter> {
  const plain = await loader.bundle(simulation);
  const others: Built[] = [];
  return {
    plain: (await loader.importFrom(plain.dir, 'run')).runSeed,
    async plant(bug) {
      const dir = (await patched(plain.dir, bug)) ?? (await built(bug.name));
      return (await loader.importFrom(dir, 'run')).runSeed;
    },
    close() {
      for (const { remove } of [plain, ...others]) remove();
    },
  };

  async function built(name: string): Promise<string> {
    const other = await loader.bundle(simulation, name);
    others.push(other);
    return other.dir;
  }
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

/** A copy of what was built, with the bug in the one file that has its place; undefined when it cannot be put there. */
async function patched(dir: string, bug: PlantedBug): Promise<string | undefined> {
  const source = readFileSync(join(ROOT, bug.file), 'utf8');
  const files = new Map<string, string>();
  let places = 0;
  for (const file of readdirSync(dir)) {
    if (!file.endsWith('.mjs')) continue;
    const text = readFileSync(join(dir, file), 'utf8').replace(/^\/\/# sourceMappingURL=.*$/m, '');
    const mutated = await patchBuilt(bug, source, text);
    if (mutated !== undefined) places++;
    files.set(file, mutated ?? text);
  }
  if (places !== 1) return undefined;
  const target = join(dir, bug.name);
  mkdirSync(target);
  for (const [file, text] of files) writeFileSync(join(target, file), text);
  return target;
}
