// Builds the simulation and what it runs into one file each for the program and its workers: bundled code runs faster
// than code whose imports are looked up one by one. With a mutation, the fault is in the build.
import { readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, parse } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { build } from 'esbuild';
import { runnerImport } from 'vite';

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));

/** What `main.mjs` of a simulation runs. */
const PROGRAM = ['cli/main.ts', 'cli/worker.ts', 'run.ts'];

/** What the adapters of a real process are built on: no simulated one uses it. By the package that has it. */
const ADAPTED = { '@grpc/grpc-js': 'protocol', level: 'dataserver', pino: 'base', 'prom-client': 'base' };

/** Leaves that where it is, by its place: the build lies elsewhere. */
const adaptedOutside = {
  name: 'adapted-outside',
  setup({ onResolve }) {
    onResolve({ filter: /^[^./]/ }, ({ path: id }) => {
      const owner = ADAPTED[id];
      if (owner === undefined) return undefined;
      const { href } = pathToFileURL(createRequire(join(ROOT, 'packages', owner, 'package.json')).resolve(id));
      return { path: href, external: true, sideEffects: false };
    });
  },
};

let builds = 0;

/** Where runs keep their state. */
export function stateDir(name) {
  return join(ROOT, '.remora', name);
}

/**
 * Builds `files` of a simulation, the folder below `test/sim`, each with all that it imports. Resolves to the folder
 * with what was built, and how to take it away. `changed` is a source file that has another text in this build.
 */
export async function bundle(simulation, { files = PROGRAM, changed } = {}) {
  builds++;
  const dir = join(stateDir(`sim-${simulation}`), `build-${process.pid}-${builds}`);
  const remove = () => rmSync(dir, { recursive: true, force: true });
  try {
    await build({
      absWorkingDir: ROOT,
      entryPoints: Object.fromEntries(
        files.map((file) => [parse(file).name, join(ROOT, 'test/sim', simulation, file)]),
      ),
      outdir: dir,
      outExtension: { '.js': '.mjs' },
      bundle: true,
      splitting: files.length > 1,
      format: 'esm',
      platform: 'node',
      target: 'node20',
      conditions: ['source'],
      sourcemap: 'inline',
      logLevel: 'silent',
      plugins: changed === undefined ? [adaptedOutside] : [adaptedOutside, withChanged(changed)],
    });
  } catch (error) {
    remove();
    throw error;
  }
  return { dir, remove };
}

function withChanged({ file, text }) {
  const path = join(ROOT, file);
  return {
    name: 'changed',
    setup({ onLoad }) {
      onLoad({ filter: /\.ts$/ }, (loaded) => (loaded.path === path ? { contents: text, loader: 'ts' } : undefined));
    },
  };
}

export async function importFrom(dir, name) {
  // Functions are compiled when first called, not only when called often: hardly any part of a run dominates it, and
  // this takes a tenth off its time.
  setFlagsFromString('--always-sparkplug');
  return import(pathToFileURL(join(dir, `${name}.mjs`)).href);
}

/** The file of the mutation, as it reads with it. */
async function mutated(name) {
  const load = async (file) => {
    const path = join(ROOT, 'test/mutations', file);
    return (await runnerImport(path, { configFile: false, logLevel: 'error' })).module;
  };
  const { mutationNamed } = await load('table.ts');
  const { mutate } = await load('mutation.ts');
  const mutation = mutationNamed(name);
  const { file } = mutation;
  return { file, text: mutate(mutation, readFileSync(join(ROOT, file), 'utf8')) };
}

/** Runs the command line of a simulation; resolves to the exit code. */
export async function runMain(simulation, args) {
  // Only what the build needs; the built program judges the rest.
  const { mutation } = parseArgs({ args, strict: false, options: { mutation: { type: 'string' } } }).values;
  let built;
  try {
    built = await bundle(simulation, typeof mutation === 'string' ? { changed: await mutated(mutation) } : {});
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    return 2;
  }
  const { dir, remove } = built;
  for (const signal of ['SIGINT', 'SIGTERM']) {
    process.once(signal, () => {
      remove();
      process.exit(130);
    });
  }
  try {
    const { main } = await importFrom(dir, 'main');
    return await main(args, { workerFile: `${dir}/worker.mjs`, stateDir: stateDir(`sim-${simulation}`) });
  } finally {
    remove();
  }
}
