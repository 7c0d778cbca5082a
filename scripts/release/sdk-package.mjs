// `npm run pack:sdk [directory]`: makes the package `remora` as it is published, and a tarball of it.
//
// P1. One file for `import` and one for `require`, each with all of our own packages in it: what is published needs no
//     other package of this workspace. Packages of others stay dependencies, in the versions that we have. The program
//     of the thread that renews sessions stands beside them, where both look for it.
// P2. Types are the compiler's, of our packages as well, once for each of the two: TypeScript takes a declaration for
//     what the package next to it says that it is.
// P3. Its documents link to nothing that is not in it.
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, posix, relative, resolve, sep } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build as bundle } from 'esbuild';
import { build } from '../build.mjs';
import { readJson, root } from '../lib.mjs';

const SDK = 'packages/client';
const OWN = /^@remora\//;
/** Oldest Node that is supported: see `engines`. */
const TARGET = 'node20';
/** Documents of ours, and what they are called in the package. */
const DOCUMENTS = new Map([
  ['reference/sdk.md', 'README.md'],
  ['reference/sdk-methods.md', 'methods.md'],
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
  const used = await bundleBoth(directory);
  for (const format of ['esm', 'cjs']) writeTypes(join(directory, 'types', format), format);
  cpSync(join(root, 'LICENSE'), join(directory, 'LICENSE'));
  for (const [name, as] of DOCUMENTS) writeFileSync(join(directory, as), documentOf(name));
  writeJson(join(directory, 'package.json'), manifest(used));
  const [packed] = JSON.parse(
    execFileSync('npm', ['pack', '--json', '--pack-destination', dirname(directory)], {
      cwd: directory,
      stdio: ['ignore', 'pipe', 'ignore'],
    }).toString(),
  );
  return join(dirname(directory), packed.filename);
}

function manifest(used) {
  const { name, version, description, license, engines } = readJson(join(SDK, 'package.json'));
  const entry = (format, file) => ({ types: `./types/${format}/client/index.d.ts`, default: `./${file}` });
  return {
    name,
    version,
    description,
    license,
    type: 'module',
    engines,
    main: './index.cjs',
    types: './types/cjs/client/index.d.ts',
    exports: { '.': { import: entry('esm', 'index.js'), require: entry('cjs', 'index.cjs') } },
    dependencies: Object.fromEntries([...used].sort().map((name) => [name, versionOf(name)])),
  };
}

/** P3. Of links to what is not in the package the words stay. */
function documentOf(name) {
  const text = readFileSync(join(root, 'docs', name), 'utf8');
  return text.replace(/\[([^\]]+)\]\((?!https?:)([^)#]*)(#[^)]*)?\)/g, (link, words, file, anchor = '') => {
    if (file === '') return link;
    const there = DOCUMENTS.get(posix.join(posix.dirname(name), file));
    return there === undefined ? words : `[${words}](${there}${anchor})`;
  });
}

/** As one of our packages has it; all have the same. */
function versionOf(name) {
  for (const folder of ['client', 'protocol', 'lock', 'base']) {
    const version = readJson(join('packages', folder, 'package.json')).dependencies?.[name];
    if (version !== undefined) return version;
  }
  throw new Error(`${name} is imported, and no package names it as a dependency`);
}

/** Gives the names of the packages that are imported. */
async function bundleBoth(directory) {
  const used = new Set();
  const others = {
    name: 'packages of others',
    setup({ onResolve }) {
      onResolve({ filter: /^[^./]/ }, ({ path }) => {
        if (OWN.test(path) || path.startsWith(root)) return undefined;
        if (!path.startsWith('node:')) used.add(/^(@[^/]+\/)?[^/]+/.exec(path)[0]);
        return { path, external: true };
      });
    },
  };
  const outputs = [
    { entry: 'dist/index.js', outfile: 'index.js', format: 'esm' },
    { entry: 'dist/index.js', outfile: 'index.cjs', format: 'cjs', ...OWN_URL },
    { entry: 'dist/node/renewal-worker.js', outfile: 'renewal-worker.js', format: 'esm' },
  ];
  for (const { entry, outfile, ...more } of outputs) {
    await bundle({
      entryPoints: [join(root, SDK, entry)],
      outfile: join(directory, outfile),
      ...more,
      bundle: true,
      platform: 'node',
      target: TARGET,
      plugins: [others],
      logLevel: 'error',
    });
  }
  return used;
}

/** Copies the declarations that those of the SDK lead to, with paths among them in place of our packages' names. */
function writeTypes(directory, format) {
  const entry = join(root, SDK, 'dist/index.d.ts');
  const found = new Set([entry]);
  for (const file of found) {
    const text = readFileSync(file, 'utf8').replace(/^\/\/# sourceMappingURL=.*$/m, '');
    const rewritten = text.replace(/(from |import\()['"]([^'"]+)['"]/g, (whole, before, specifier) => {
      const target = declarationOf(specifier, file);
      if (target === undefined) return whole;
      found.add(target);
      const path = relative(dirname(placeOf(file)), placeOf(target))
        .split(sep)
        .join('/');
      return `${before}'${path.startsWith('.') ? path : `./${path}`}'`.replace(/\.d\.ts'$/, ".js'");
    });
    const place = join(directory, placeOf(file));
    mkdirSync(dirname(place), { recursive: true });
    writeFileSync(place, rewritten);
  }
  writeJson(join(directory, 'package.json'), { type: format === 'esm' ? 'module' : 'commonjs' });
}

/** The file that an import means; undefined for packages of others. */
function declarationOf(specifier, file) {
  if (specifier.startsWith('.')) return resolve(dirname(file), specifier.replace(/\.[jt]s$/, '.d.ts'));
  if (!OWN.test(specifier)) return undefined;
  const [, folder, ...rest] = specifier.split('/');
  const { exports } = readJson(join('packages', folder, 'package.json'));
  return join(root, 'packages', folder, exports[['.', ...rest].join('/')].types);
}

/** `packages/base/dist/clock.d.ts` is published as `base/clock.d.ts`. */
function placeOf(file) {
  return relative(join(root, 'packages'), file).replace(`${sep}dist${sep}`, sep);
}

function writeJson(path, value) {
  writeFileSync(path, `${JSON.stringify(value, null, 2)}\n`);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  if (!existsSync(join(root, 'node_modules'))) throw new Error('run `npm run build` first');
  await build();
  console.log(await packSdk(resolve(process.argv[2] ?? join(root, 'dist/remora'))));
}
