/**
 * Looks for the first seed that finds each planted bug, which its row in sim-mutations.ts names: a change of the product
 * or of the simulation makes other runs of the same seeds.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { withPlantedTable } from '../../../../packages/raft/test/mutations/planted-table.ts';
import { SIM_MUTATIONS, type SimMutation } from '../../../../packages/raft/test/mutations/sim-mutations.ts';
import { type Loader, openPlanter } from '../planted.ts';
import type { runSeed } from '../run.ts';

const USAGE = `pnpm planted:raft [NAME…] [options]
  NAME        a bug of packages/raft/test/mutations/sim-mutations.ts (default: all)
  --seeds N   seeds to run for each, from 1 on (default 300; 0: only the table)
  --stale     only those that the seed of their row does not find any more
  --write     write the seeds into sim-mutations.ts, and the table into docs/testing.md`;

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
const TABLE = join(ROOT, 'packages/raft/test/mutations/sim-mutations.ts');
const DOCS = join(ROOT, 'docs/testing.md');

/** The exit code: 0 when each was found. */
export async function main(args: readonly string[], loader: Loader): Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...args],
    options: {
      seeds: { type: 'string', default: '300' },
      stale: { type: 'boolean', default: false },
      write: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
    allowPositionals: true,
  });
  const unknown = positionals.filter((name) => !SIM_MUTATIONS.some((mutation) => mutation.name === name));
  if (values.help || unknown.length > 0) {
    console.log(unknown.length > 0 ? `there is no bug ${unknown.join(', ')}\n\n${USAGE}` : USAGE);
    return values.help ? 0 : 2;
  }
  const chosen = SIM_MUTATIONS.filter(({ name }) => positionals.length === 0 || positionals.includes(name));
  const found = await findAll(chosen, { loader, seeds: Number(values.seeds), stale: values.stale });
  if (values.write) write(found);
  return Number(values.seeds) === 0 || found.size === chosen.length ? 0 : 1;
}

/** The seeds that find the bugs, by name. */
async function findAll(
  mutations: readonly SimMutation[],
  options: { readonly loader: Loader; readonly seeds: number; readonly stale: boolean },
): Promise<ReadonlyMap<string, number>> {
  const found = new Map<string, number>();
  const planter = await openPlanter(options.loader);
  try {
    for (const mutation of mutations) {
      const { name, foundBy } = mutation;
      const run = await planter.plant(name);
      const held = options.stale && (await finds(run, foundBy[0], mutation)) ? foundBy[0] : undefined;
      const seed = held ?? (await firstSeed(run, mutation, options.seeds));
      if (seed !== undefined) found.set(name, seed);
      console.log(`${name.padEnd(48)} ${seed === undefined ? 'not found' : `seed ${seed}`}`);
    }
  } finally {
    planter.close();
  }
  return found;
}

async function firstSeed(run: typeof runSeed, mutation: SimMutation, seeds: number): Promise<number | undefined> {
  for (let seed = 1; seed <= seeds; seed++) if (await finds(run, seed, mutation)) return seed;
  return undefined;
}

async function finds(run: typeof runSeed, seed: number, { properties }: SimMutation): Promise<boolean> {
  const { failure } = await run(seed);
  return failure !== undefined && properties.includes(failure.property);
}

function write(found: ReadonlyMap<string, number>): void {
  let table = readFileSync(TABLE, 'utf8');
  for (const [name, seed] of found) {
    const at = table.indexOf('foundBy: [', table.indexOf(`name: '${name}'`));
    table = table.slice(0, at) + table.slice(at).replace(/^foundBy: \[\d+\]/, `foundBy: [${seed}]`);
  }
  writeFileSync(TABLE, table);
  const now = SIM_MUTATIONS.map((mutation) => ({
    ...mutation,
    foundBy: [found.get(mutation.name) ?? mutation.foundBy[0]] as const,
  }));
  writeFileSync(DOCS, withPlantedTable(readFileSync(DOCS, 'utf8'), now));
}
