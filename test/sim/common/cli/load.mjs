// Builds the simulation with its dependencies into one file each for the program and its workers: bundled code runs
// faster than code whose imports are looked up one by one. With a mutation, the build contains the fault.
import { readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, parse } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { build } from 'esbuild';
import { runnerImport } from 'vite';

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));

/** The files that `main.mjs` of a simulation runs. */
const PROGRAM = ['cli/main.ts', 'cli/worker.ts', 'run.ts'];

/** The dependencies of a real process's adapters, which no simulated process uses; by their packages. */
const ADAPTED = { level: 'dataserver', pino: 'base', 'prom-client': 'base' };

/** Keeps a reference to its place: the build is in another folder. */
const adaptedOutside = {
  name: 'adapted-outside',
  setup({ onResolve }) {
    onResolve({ filter: exactly(...Object.keys(ADAPTED)) }, ({ path: id }) => {
      const { href } = pathToFileURL(createRequire(join(ROOT, 'packages', ADAPTED[id], 'package.json')).resolve(id));
      return { path: href, external: true, sideEffects: false };
    });
  },
};

let builds = 0;

/** The folder for the state of runs. */
export function stateDir(name) {
  return join(ROOT, '.remora', name);
}

/**
 * Builds `files` of a simulation, the folder below `test/sim`, each with all its imports. Resolves to the folder of the
 * build, and a function that deletes it. `changed` is a source file with another text in this build. Without
 * `sourceMaps` a build takes three quarters of the time, and is a quarter as large.
 */
export async function bundle(simulation, { files = PROGRAM, changed, sourceMaps = true } = {}) {
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
      sourcemap: sourceMaps && 'inline',
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
  return {
    name: 'changed',
    setup({ onLoad }) {
      onLoad({ filter: exactly(join(ROOT, file)) }, () => ({ contents: text, loader: 'ts' }));
    },
  };
}

/** A filter that esbuild itself applies: it calls a plugin, which is in another process, for these paths only. */
function exactly(...paths) {
  const escaped = paths.map((path) => path.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^(?:${escaped.join('|')})$`);
}

export async function importFrom(dir, name) {
  // Functions are compiled when first called, not only when called often: no part of a run dominates it, and this
  // reduces its time by a tenth.
  setFlagsFromString('--always-sparkplug');
  return import(pathToFileURL(join(dir, `${name}.mjs`)).href);
}

/** The mutated file. */
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
  // Only the option that the build needs; the built program checks the rest.
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
