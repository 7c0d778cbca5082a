// Builds the fuzzer into one file for the program and one for its worker: bundled code needs no loader in the worker.
import { copyFileSync, mkdirSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'vite';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const CONDITIONS = ['source', 'node'];

/** Resolves to the folder with `main.mjs` and `worker.mjs`, and to a function that removes it. */
export async function bundle() {
  const dir = join(ROOT, `.remora/fuzz/build-${process.pid}`);
  mkdirSync(dir, { recursive: true });
  // The command line reads its version from the folder above its code.
  copyFileSync(join(ROOT, 'packages/cli/package.json'), join(dir, '../package.json'));
  await build({
    configFile: false,
    root: ROOT,
    logLevel: 'error',
    plugins: [outside('level', 'packages/dataserver/package.json')],
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
        },
        output: { entryFileNames: '[name].mjs', chunkFileNames: '[name]-[hash].mjs' },
      },
    },
  });
  return { dir, remove: () => rmSync(dir, { recursive: true, force: true }) };
}

/**
 * A package that cannot be bundled, because it has a native part. It is imported from where the named package finds it.
 */
function outside(name, from) {
  const id = pathToFileURL(createRequire(join(ROOT, from)).resolve(name)).href;
  return {
    name: `outside-${name}`,
    enforce: 'pre',
    resolveId: (source) => (source === name ? { id, external: true } : null),
  };
}

export async function importFrom(dir, name) {
  return import(pathToFileURL(join(dir, `${name}.mjs`)).href);
}

export const CORPUS_DIR = fileURLToPath(new URL('../corpus', import.meta.url));
