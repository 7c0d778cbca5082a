// The package `remora-server`: a node and the command line, as programs that need nothing of this workspace.
//
// SV1. Our packages, and those of others that are pure JavaScript, are in the bundle. Packages with native code, and
//      what they need, come with it (`bundledDependencies`) in the versions that we have: an installation needs no
//      network, and runs what was tested.
// SV2. Every file of `dist` that looks for another one finds it beside itself or one directory above, in the bundle as
//      in the workspace.
// SV3. The same tree makes the same bytes: no time, path or random number of a build is in it.
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { build as bundle } from 'esbuild';
import { readJson, root } from '../lib.mjs';
import { billOfMaterials, componentIn, componentsOf, licensesOf } from './components.mjs';
import { copyDocuments } from './documents.mjs';
import { common, pack, published, TARGET, writeJson } from './package-files.mjs';
import { layOutTesting, testingManifest } from './testing-entry.mjs';

const NAME = 'remora-server';
/** SV1: packages with native code, and the package that names each as its dependency. */
const NATIVE = new Map([['classic-level', 'level']]);
/** Optional: msgpackr works without it, and packs nothing on our hot path. */
const LEFT_OUT = ['msgpackr-extract'];
/** What packages of CommonJS call in an ES module. */
const REQUIRE = `import { createRequire as requireOf } from 'node:module';\nconst require = requireOf(import.meta.url);`;
/** SV2: the program, and those that it starts as processes and threads. */
const PROGRAMS = {
  main: 'packages/cli/dist/main.js',
  'guard-main': 'packages/cli/dist/run/guard-main.js',
  'password-worker': 'packages/auth/dist/node/password-worker.js',
  'renewal-worker': 'packages/client/dist/node/renewal-worker.js',
};

/** Writes the package into `directory`, and returns the path of its tarball beside it. All must have been built. */
export async function packServer(directory) {
  const { metafile, required } = await layOut(directory);
  // The test node has no component that a node has not.
  const bundled = [...componentsOf(metafile), ...consoleComponents()].sort((a, b) => (a.name < b.name ? -1 : 1));
  const manifest = manifestOf(required);
  for (const file of common) cpSync(join(root, file), join(directory, file));
  cpSync(join(root, 'deploy/README.npm.md'), join(directory, 'README.md'));
  copyDocuments(directory);
  writeFileSync(join(directory, 'THIRD-PARTY-LICENSES.txt'), licensesOf(bundled));
  writeFileSync(join(directory, 'sbom.cdx.json'), billOfMaterials(manifest, bundled, required));
  writeJson(join(directory, 'package.json'), manifest);
  return pack(directory);
}

/** Writes programs that can run into `directory`, as a release of this tree has them. */
export async function layOutPrograms(directory) {
  const { required } = await layOut(directory);
  writeJson(join(directory, 'package.json'), manifestOf(required));
}

/**
 * Writes programs that can run into `directory`, as the release `version` (0.2.0) would have them: they write what that
 * release writes, whatever this tree is.
 */
export async function layOutRelease(directory, version) {
  const newest = version.split('.').slice(0, 2).join('.');
  const { required } = await layOut(directory, { REMORA_NEWEST_VERSION: JSON.stringify(newest) });
  writeJson(join(directory, 'package.json'), { ...manifestOf(required), version });
}

/** The programs and what they need. */
async function layOut(directory, define = {}) {
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true });
  const { metafile } = await bundle({
    define,
    entryPoints: Object.entries(PROGRAMS).map(([out, file]) => ({ in: join(root, file), out })),
    outdir: join(directory, 'dist'),
    absWorkingDir: root,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: TARGET,
    chunkNames: 'part-[hash]',
    external: [...NATIVE.keys(), ...LEFT_OUT],
    banner: { js: REQUIRE },
    metafile: true,
    logLevel: 'error',
  });
  await layOutTesting(directory, { external: [...NATIVE.keys(), ...LEFT_OUT], esmBanner: REQUIRE, define });
  const required = copyWithDependencies(
    [...NATIVE].map(([name, owner]) => directoryOf(name, ownerOf(owner))),
    directory,
  );
  mkdirSync(join(directory, 'bin'));
  cpSync(join(root, 'packages/cli/bin/remora.mjs'), join(directory, 'bin/remora.mjs'));
  chmodSync(join(directory, 'bin/remora.mjs'), 0o755);
  cpSync(join(root, 'packages/console/dist/static'), join(directory, 'console'), { recursive: true });
  return { metafile, required };
}

function manifestOf(required) {
  const { type, bin, version } = readJson('packages/cli/package.json');
  const description = 'Remora: a lock service and a consistent key-value store. The server and the command line.';
  const dependencies = Object.fromEntries(required.map((component) => [component.name, component.version]));
  const bundledDependencies = Object.keys(dependencies);
  return {
    ...{ ...published('packages/cli/package.json'), name: NAME, description },
    ...{ type, bin, ...testingManifest(version), dependencies, bundledDependencies },
  };
}

/** The packages of others in the files of the console, which Vite has bundled. */
function consoleComponents() {
  const manifest = join(root, 'packages/console/package.json');
  return Object.keys(readManifest(join(root, 'packages/console')).dependencies).map((name) =>
    componentIn(directoryOf(name, manifest)),
  );
}

/** Copies packages and all that they depend on into `node_modules` of `directory`; returns them as components. */
function copyWithDependencies(packages, directory) {
  const copied = new Map();
  for (const dir of packages) {
    const { name, version, dependencies = {} } = readManifest(dir);
    const before = copied.get(name);
    if (before !== undefined && before.version !== version) throw new Error(`two versions of ${name} are needed`);
    if (before !== undefined) continue;
    copied.set(name, componentIn(dir));
    cpSync(dir, join(directory, 'node_modules', name), { recursive: true, dereference: true });
    packages.push(...Object.keys(dependencies).map((needed) => directoryOf(needed, join(dir, 'package.json'))));
  }
  return [...copied.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** A file of the package `name`, which the command line uses. */
function ownerOf(name) {
  return createRequire(join(root, 'packages/cli/package.json')).resolve(name);
}

/** Where the package `name` is installed for a file of another one, though Node has a module of that name itself. */
function directoryOf(name, file) {
  const places = createRequire(file).resolve.paths(`${name}/`) ?? [];
  const found = places.map((place) => join(place, name)).find((dir) => existsSync(join(dir, 'package.json')));
  if (found === undefined) throw new Error(`${name} is not installed for ${file}`);
  return realpathSync(found);
}

function readManifest(dir) {
  return JSON.parse(readFileSync(join(dir, 'package.json'), 'utf8'));
}
