// The package `remora`: the SDK. `node scripts/release/sdk-package.mjs [directory]` makes it alone, from what is built.
//
// P1. The entries `remora`, `remora/admin`, `remora/metrics`, `remora/redlock` and `remora/migrate`, each for `import`
//     and for `require`. All that they need is in the package: it depends on no other, neither of this workspace nor of
//     others. What several entries need is in files that all of them load, so that an error of one is an instance of
//     the other's class. The program of the thread that renews sessions stands beside them, where they look for it.
// P2. Types are the compiler's, of everything that is in the package, once for each of the two kinds: TypeScript takes
//     a declaration for what the package next to it says that it is.
// P3. Its documents link to nothing that is not in it (documents.mjs).
// P4. `remora` loads nothing of what only `remora/admin` needs, such as protobuf.
import { cpSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build as bundle } from 'esbuild';
import { root } from '../lib.mjs';
import { billOfMaterials, componentsOf, licensesOf } from './components.mjs';
import { documentOf } from './documents.mjs';
import { common, pack, published, TARGET, writeJson } from './package-files.mjs';
import { writeTypes } from './sdk-types.mjs';

const SDK = 'packages/client';
/** What is compiled into each file, without its ending. */
const ENTRIES = {
  ...{ index: 'dist/index.js', admin: 'dist/admin.js', redlock: 'dist/redlock.js' },
  ...{ metrics: 'dist/metrics.js', migrate: 'dist/migrate.js' },
  'renewal-worker': 'dist/node/renewal-worker.js',
};
/** The entries besides `remora` itself. */
const FURTHER = ['admin', 'metrics', 'redlock', 'migrate'];
/** Documents of ours, and what they are called in the package. */
const DOCUMENTS = new Map([
  ['reference/sdk.md', 'README.md'],
  ['reference/sdk-methods.md', 'methods.md'],
  ['reference/sdk-admin.md', 'admin.md'],
  ['reference/sdk-redlock.md', 'redlock.md'],
  ['reference/sdk-migrate.md', 'migrate.md'],
  ['reference/errors.md', 'errors.md'],
  ['understand/locks.md', 'locks.md'],
]);
/** What a module calls its own URL, in a file for `require`. */
const OWN_URL = {
  define: { 'import.meta.url': 'ownUrl' },
  banner: { js: `const ownUrl = require('node:url').pathToFileURL(__filename).href;` },
};

/**
 * Writes the package into `directory`, and gives the path of its tarball beside it. Everything must have been built.
 */
export async function packSdk(directory) {
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true });
  const metafile = await bundleForImport(directory);
  await bundleForRequire(directory, Object.keys(metafile.outputs));
  for (const format of ['esm', 'cjs']) writeTypes(join(directory, 'types', format), format);
  for (const file of common) cpSync(join(root, file), join(directory, file));
  for (const [name, as] of DOCUMENTS) {
    writeFileSync(
      join(directory, as),
      documentOf(name, (file) => DOCUMENTS.get(file)),
    );
  }
  const bundled = componentsOf(metafile);
  writeFileSync(join(directory, 'THIRD-PARTY-LICENSES.txt'), licensesOf(bundled));
  writeFileSync(join(directory, 'sbom.cdx.json'), billOfMaterials(manifest(), bundled, []));
  writeJson(join(directory, 'package.json'), manifest());
  return pack(directory);
}

function manifest() {
  const types = (format, name) => `./types/${format}/client/${name}.d.ts`;
  const entry = (name) => ({
    import: { types: types('esm', name), default: `./${name}.js` },
    require: { types: types('cjs', name), default: `./${name}.cjs` },
  });
  return {
    ...published(join(SDK, 'package.json')),
    type: 'module',
    sideEffects: false,
    main: './index.cjs',
    module: './index.js',
    types: types('cjs', 'index'),
    // For `moduleResolution: node10`, which does not read `exports`.
    typesVersions: { '*': Object.fromEntries(FURTHER.map((name) => [name, [types('cjs', name)]])) },
    exports: {
      '.': entry('index'),
      ...Object.fromEntries(FURTHER.map((name) => [`./${name}`, entry(name)])),
      './package.json': './package.json',
    },
  };
}

/** P1, P4. Returns esbuild's account of what is in which file. */
async function bundleForImport(directory) {
  const { metafile } = await bundle({
    ...{ bundle: true, platform: 'node', target: TARGET, format: 'esm', splitting: true, chunkNames: 'part-[hash]' },
    entryPoints: Object.entries(ENTRIES).map(([out, file]) => ({ in: join(root, SDK, file), out })),
    ...{ outdir: directory, absWorkingDir: root, metafile: true, logLevel: 'error' },
  });
  return metafile;
}

/** The same files for `require`. Only `import` loads the renewal thread's program. */
async function bundleForRequire(directory, outputs) {
  const files = outputs.map((output) => basename(output)).filter((file) => file !== 'renewal-worker.js');
  const beside = {
    name: 'files beside',
    setup({ onResolve }) {
      onResolve({ filter: /^\.\/[\w-]+\.js$/ }, ({ path, kind }) =>
        kind === 'entry-point' ? undefined : { path: path.replace(/\.js$/, '.cjs'), external: true },
      );
    },
  };
  await bundle({
    ...{ bundle: true, platform: 'node', target: TARGET, format: 'cjs', outExtension: { '.js': '.cjs' }, ...OWN_URL },
    entryPoints: files.map((file) => ({ in: join(directory, file), out: basename(file, '.js') })),
    ...{ outdir: directory, absWorkingDir: directory, plugins: [beside], logLevel: 'error' },
  });
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  if (!existsSync(join(root, SDK, 'dist'))) throw new Error('run `npm run build` first');
  console.log(await packSdk(resolve(process.argv[2] ?? join(root, 'dist/remora'))));
}
