/**
 * Finds, for each planted bug, the first seed that exposes it. The bug's row names that seed. Any change to the product
 * or to the simulation changes the runs of all seeds.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { PlantedBug, Planting } from './planted-bug.ts';
import { withPlantedTable } from './planted-table.ts';
import { finds, inFull, type Loader, planted, type Replayed, type RunSeed } from './planter.ts';
import { failingUnitTest } from './unit-tests.ts';

const usage = ({ command, files }: Planting): string => `${command} [NAME…] [options]
  NAME        a bug of ${files.join(', ')} (default: all)
  --seeds N   seeds to run for each, from 1 on (default 300)
  --stale     only those that the seed of their row does not find any more
  --units     which unit tests fail with each bug, in place of which seeds
  --table     only the table in docs/testing/planted-bugs.md
  --write     write what was found into the rows, and the table into docs/testing/planted-bugs.md
  --list      the names of all, with their rules`;

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
const DOCS = join(ROOT, 'docs/testing/planted-bugs.md');

interface Choice {
  readonly bugs: readonly PlantedBug[];
  readonly seeds: number;
  readonly stale: boolean;
  readonly units: boolean;
  readonly table: boolean;
  readonly write: boolean;
  readonly shown: string | undefined;
}

/** @throws Error that describes the mistake in the command line. */
function choose(planting: Planting, args: readonly string[]): Choice {
  const { values, positionals } = parseArgs({
    args: [...args],
    options: {
      seeds: { type: 'string', default: '300' },
      stale: { type: 'boolean', default: false },
      units: { type: 'boolean', default: false },
      table: { type: 'boolean', default: false },
      write: { type: 'boolean', default: false },
      list: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
    allowPositionals: true,
  });
  const unknown = positionals.filter((name) => !planting.bugs.some((bug) => bug.name === name));
  if (unknown.length > 0) throw new Error(`there is no bug ${unknown.join(', ')}: --list shows them`);
  const seeds = Number(values.seeds);
  if (!Number.isSafeInteger(seeds) || seeds < 1)
    throw new Error(`--seeds: "${values.seeds}" is not a whole number above 0`);
  const { stale, units, table, write } = values;
  const list = planting.bugs.map(({ name, rule }) => `${name}: ${rule}`).join('\n');
  const bugs = planting.bugs.filter(({ name }) => positionals.length === 0 || positionals.includes(name));
  const shown = values.help ? usage(planting) : values.list ? list : undefined;
  return { bugs, seeds, stale, units, table, write, shown };
}

/** The exit code: 0 if each was found, 2 for invalid arguments. */
export async function findPlanted(planting: Planting, args: readonly string[], loader: Loader): Promise<number> {
  let choice: Choice;
  try {
    choice = choose(planting, args);
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n\n${usage(planting)}`);
    return 2;
  }
  if (choice.shown !== undefined) {
    console.log(choice.shown);
    return 0;
  }
  if (choice.table) {
    writeTable(planting.bugs);
    return 0;
  }
  const found = choice.units ? await unitTests(choice.bugs) : await seeds(planting, choice, loader);
  if (choice.write) write(planting, found);
  return found.size === choice.bugs.length ? 0 : 1;
}

/** The result for each bug, by its name. */
interface Learned {
  readonly seed?: number;
  /** Together with `seed`. Undefined: as long as any run. */
  readonly runMs?: number | undefined;
  /** Undefined: all unit tests pass. */
  readonly caughtBy?: string | undefined;
}
type Found = ReadonlyMap<string, Learned>;

async function unitTests(bugs: readonly PlantedBug[]): Promise<Found> {
  const found = new Map<string, { readonly caughtBy: string | undefined }>();
  for (const bug of bugs) {
    const caughtBy = await failingUnitTest(bug);
    found.set(bug.name, { caughtBy });
    console.log(`${bug.name.padEnd(48)} ${caughtBy ?? 'all unit tests pass'}`);
  }
  return found;
}

async function seeds({ simulation, shortRunsMs = [] }: Planting, choice: Choice, loader: Loader): Promise<Found> {
  const found = new Map<string, Learned>();
  for (const bug of choice.bugs) {
    const run = await planted(loader, { simulation, name: 'run' }, bug);
    const held = choice.stale && (await finds(run, bug, bug));
    const replayed = held ? bug : await firstSeed(run, bug, { count: choice.seeds, shortRunsMs });
    if (replayed !== undefined) found.set(bug.name, { seed: replayed.seed, runMs: replayed.runMs });
    console.log(`${bug.name.padEnd(48)} ${replayed === undefined ? 'not found' : runText(replayed)}`);
  }
  return found;
}

async function firstSeed(
  run: RunSeed,
  bug: PlantedBug,
  { count, shortRunsMs }: { readonly count: number; readonly shortRunsMs: readonly number[] },
): Promise<Replayed | undefined> {
  for (let seed = 1; seed <= count; seed++) {
    const otherwise = (broken: string): void => console.log(`${bug.name}: seed ${seed} breaks '${broken}', not listed`);
    if (await finds(run, inFull({ ...bug, seed }), bug, otherwise)) return shortest(run, bug, { seed, shortRunsMs });
  }
  return undefined;
}

/** The shortest run of a seed that still finds the bug. */
async function shortest(
  run: RunSeed,
  bug: PlantedBug,
  { seed, shortRunsMs }: { readonly seed: number; readonly shortRunsMs: readonly number[] },
): Promise<Replayed> {
  for (const runMs of shortRunsMs)
    if (await finds(run, { ...inFull({ ...bug, seed }), runMs }, bug)) return { seed, runMs };
  return { seed };
}

function runText({ seed, runMs }: Replayed): string {
  return runMs === undefined ? `seed ${seed}` : `seed ${seed}, within ${runMs} ms`;
}

function write({ files, bugs }: Planting, found: Found): void {
  for (const file of files) {
    const path = join(ROOT, file);
    let text = readFileSync(path, 'utf8');
    for (const [name, row] of found) text = withRow(text, name, row);
    writeFileSync(path, text);
  }
  const now = bugs.map((bug) => {
    const { caughtBy, runMs, ...rest } = { ...bug, ...found.get(bug.name) };
    return { ...rest, ...(runMs !== undefined && { runMs }), ...(caughtBy !== undefined && { caughtBy }) };
  });
  writeTable(now);
}

/** Updates the row of one bug in the text of a bug file. The text stays unchanged if the bug is in another file. */
function withRow(text: string, name: string, row: Learned): string {
  const at = text.indexOf(`name: '${name}'`);
  if (at === -1) return text;
  const end = text.indexOf('\n  },', at);
  let lines = text.slice(at, end);
  if (row.seed !== undefined) {
    const runMs = row.runMs === undefined ? '' : `\n    runMs: ${digitsApart(row.runMs)},`;
    lines = lines.replace(/\n {4}runMs: [\d_]+,/, '').replace(/seed: \d+,/, `seed: ${row.seed},${runMs}`);
  }
  if ('caughtBy' in row) {
    lines = lines.replace(/\n {4}caughtBy: '[^']*',/, '');
    if (row.caughtBy !== undefined)
      lines = lines.replace(/(\n {4}properties:)/, `\n    caughtBy: '${row.caughtBy}',$1`);
  }
  return text.slice(0, at) + lines + text.slice(end);
}

function digitsApart(value: number): string {
  return String(value).replace(/(?=(\d{3})+$)(?<=\d)/g, '_');
}

function writeTable(bugs: readonly PlantedBug[]): void {
  writeFileSync(DOCS, withPlantedTable(readFileSync(DOCS, 'utf8'), bugs));
}
