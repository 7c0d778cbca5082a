// Builds the simulation and what it runs into one file each for the program and its workers: bundled code runs faster
// than code whose imports are looked up one by one. With a mutation, the fault is in the build.
import { mkdirSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { build, runnerImport } from 'vite';

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
const CONDITIONS = ['source', 'node'];

/** What the adapters of a real process are built on: no simulated one uses it. By the package that has it. */
const ADAPTED = { '@grpc/grpc-js': 'protocol', level: 'dataserver', pino: 'base', 'prom-client': 'base' };

/** Where the build, which lies elsewhere, finds it. */
function placeOf(id) {
  const owner = ADAPTED[id];
  if (owner === undefined) return id;
  return pathToFileURL(createRequire(join(ROOT, 'packages', owner, 'package.json')).resolve(id)).href;
}

/** Where runs keep their state. */
export function stateDir(name) {
  return join(ROOT, '.remora', name);
}

/**
 * Builds a simulation: the folder below `test/sim` with `cli/main.ts`, `cli/worker.ts` and `run.ts`. Resolves to the
 * folder with what was built of each, and how to take it away.
 */
export async function bundle(simulation, mutation) {
  const dir = join(stateDir(`sim-${simulation}`), `build-${process.pid}-${mutation ?? 'none'}`);
  const source = (file) => join(ROOT, 'test/sim', simulation, file);
  const plugins = mutation === undefined ? [] : await mutationPlugins(mutation);
  mkdirSync(dir, { recursive: true });
  await build({
    configFile: false,
    root: ROOT,
    logLevel: 'error',
    plugins,
    // Each file is compiled by itself and the whole is not compiled again: names stay what they are in the sources.
    esbuild: { target: 'node20' },
    resolve: { conditions: CONDITIONS },
    ssr: { noExternal: true, resolve: { conditions: CONDITIONS } },
    build: {
      ssr: true,
      outDir: dir,
      target: 'esnext',
      minify: false,
      sourcemap: 'inline',
      rollupOptions: {
        external: Object.keys(ADAPTED),
        treeshake: { moduleSideEffects: (id) => !(id in ADAPTED) },
        input: {
          main: source('cli/main.ts'),
          worker: source('cli/worker.ts'),
          run: source('run.ts'),
        },
        output: { entryFileNames: '[name].mjs', chunkFileNames: '[name]-[hash].mjs', paths: placeOf },
      },
    },
  });
  return { dir, remove: () => rmSync(dir, { recursive: true, force: true }) };
}

export async function importFrom(dir, name) {
  // Functions are compiled when first called, not only when called often: hardly any part of a run dominates it, and this
  // takes a tenth off its time.
  setFlagsFromString('--always-sparkplug');
  return import(pathToFileURL(join(dir, `${name}.mjs`)).href);
}

async function mutationPlugins(name) {
  const file = join(ROOT, 'test/mutations/plugin.ts');
  const { module } = await runnerImport(file, { configFile: false, logLevel: 'error' });
  return module.mutationPlugins(name);
}

/** Runs the command line of a simulation; resolves to the exit code. */
export async function runMain(simulation, args) {
  // Only what the build needs; the built program judges the rest.
  const { mutation } = parseArgs({ args, strict: false, options: { mutation: { type: 'string' } } }).values;
  let built;
  try {
    built = await bundle(simulation, typeof mutation === 'string' ? mutation : undefined);
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
