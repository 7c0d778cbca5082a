/**
 * The simulation with a planted bug in it. It is built once; bugs are put into the built program, and only where that
 * is not possible (patch.ts B2) it is built anew with the bug.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { patchBuilt } from '../../../packages/raft/test/mutations/patch.ts';
import { mutationNamed } from '../../../packages/raft/test/mutations/table.ts';
import type { runSeed } from './run.ts';

/** What `cli/load.mjs` has. */
export interface Loader {
  bundle(mutation?: string): Promise<Built>;
  importFrom(dir: string, name: string): Promise<{ readonly runSeed: typeof runSeed }>;
}

interface Built {
  readonly dir: string;
  readonly remove: () => void;
}

export interface Planter {
  /** The simulation with that bug of packages/raft/test/mutations. */
  plant(name: string): Promise<typeof runSeed>;
  /** Takes away what was built. */
  close(): void;
}

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

export async function openPlanter(loader: Loader): Promise<Planter> {
  const plain = await loader.bundle();
  const others: Built[] = [];
  return {
    async plant(name) {
      const dir = (await patched(plain.dir, name)) ?? (await built(name));
      return (await loader.importFrom(dir, 'run')).runSeed;
    },
    close() {
      for (const { remove } of [plain, ...others]) remove();
    },
  };

  async function built(name: string): Promise<string> {
    const other = await loader.bundle(name);
    others.push(other);
    return other.dir;
  }
}

/** A copy of what was built, with the bug in the one file that has its place; undefined when it cannot be put there. */
async function patched(dir: string, name: string): Promise<string | undefined> {
  const mutation = mutationNamed(name);
  const source = readFileSync(join(ROOT, mutation.file), 'utf8');
  const files = new Map<string, string>();
  let places = 0;
  for (const file of readdirSync(dir)) {
    if (!file.endsWith('.mjs')) continue;
    const text = readFileSync(join(dir, file), 'utf8').replace(/^\/\/# sourceMappingURL=.*$/m, '');
    const mutated = await patchBuilt(mutation, source, text);
    if (mutated !== undefined) places++;
    files.set(file, mutated ?? text);
  }
  if (places !== 1) return undefined;
  const target = join(dir, name);
  mkdirSync(target);
  for (const [file, text] of files) writeFileSync(join(target, file), text);
  return target;
}
