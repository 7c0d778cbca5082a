// Builds the simulation and what it runs into one file each for the program and its workers: bundled code runs faster
// than code whose imports are looked up one by one. With a mutation, the fault is in the build.
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build, runnerImport } from 'vite';

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
const CONDITIONS = ['source', 'node'];

/** Where runs keep their state. */
export const STATE_DIR = join(ROOT, '.remora/sim-raft');

/** Resolves to the folder with `main.mjs` and `worker.mjs`, and how to take it away. */
export async function bundle(mutation) {
  const dir = join(STATE_DIR, `build-${process.pid}-${mutation ?? 'none'}`);
  mkdirSync(dir, { recursive: true });
  await build({
    configFile: false,
    root: ROOT,
    logLevel: 'error',
    plugins: mutation === undefined ? [] : await mutationPlugins(mutation),
    resolve: { conditions: CONDITIONS },
    ssr: { noExternal: true, resolve: { conditions: CONDITIONS } },
    build: {
      ssr: true,
      outDir: dir,
      target: 'node20',
      minify: false,
      sourcemap: 'inline',
      rollupOptions: {
        input: {
          main: fileURLToPath(new URL('main.ts', import.meta.url)),
          worker: fileURLToPath(new URL('worker.ts', import.meta.url)),
          run: fileURLToPath(new URL('../run.ts', import.meta.url)),
        },
        output: { entryFileNames: '[name].mjs', chunkFileNames: '[name]-[hash].mjs' },
      },
    },
  });
  return { dir, remove: () => rmSync(dir, { recursive: true, force: true }) };
}

export async function importFrom(dir, name) {
  return import(pathToFileURL(join(dir, `${name}.mjs`)).href);
}

async function mutationPlugins(name) {
  const file = join(ROOT, 'packages/raft/test/mutations/plugin.ts');
  const { module } = await runnerImport(file, { configFile: false, logLevel: 'error' });
  return module.mutationPlugins(name);
}
