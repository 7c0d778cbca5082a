// Generates code from the protobuf definitions, compiles every package, and bundles the programs as a release does.
// Steps that are up to date are skipped.
// `npm run build` installs before, where that has not been done.
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { install } from './install.mjs';
import { digestTimes, filesUnder, must, root, Stamp, tool } from './lib.mjs';

const GENERATOR = 'packages/protocol/scripts/generate.mjs';

export async function build() {
  await generate();
  await compile();
  await buildConsole();
  await bundlePrograms();
}

/** Turns the .proto files into TypeScript; the result is not kept in version control. */
export async function generate() {
  if (!existsSync(join(root, GENERATOR))) return;
  const digest = digestTimes([
    'pnpm-lock.yaml',
    ...filesUnder('packages/protocol').filter((path) => !path.includes('/src/')),
  ]);
  const stamp = new Stamp('generate');
  if (stamp.matches(digest) && existsSync(join(root, 'packages/protocol/src/gen'))) return;
  console.log('Generating protocol code ...');
  await must('generate', process.execPath, [join(root, GENERATOR)]);
  stamp.write(digest);
}

async function compile() {
  const inputs = ['pnpm-lock.yaml', 'tsconfig.json', 'tsconfig.base.json', ...filesUnder('packages').filter(isInput)];
  const digest = digestTimes(inputs);
  const stamp = new Stamp('build');
  const built = packagesBuilt().every((name) => existsSync(join(root, 'packages', name, 'dist', '.tsbuildinfo')));
  if (built && stamp.matches(digest)) return;
  console.log('Building ...');
  await must('build', process.execPath, [tool('typescript', 'bin/tsc'), '-b']);
  stamp.write(digest);
}

/** Bundles the console for browsers, which takes some seconds, only after a change of its own files. */
async function buildConsole() {
  const directory = join(root, 'packages/console');
  const digest = digestTimes([
    'pnpm-lock.yaml',
    ...filesUnder('packages/console').filter((path) => !/\/test\//.test(path)),
  ]);
  const stamp = new Stamp('console');
  if (stamp.matches(digest) && existsSync(join(directory, 'dist/static/index.html'))) return;
  console.log('Building the console ...');
  const vite = join(directory, 'node_modules/vite/bin/vite.js');
  await must('console', process.execPath, [vite, 'build', '--logLevel', 'warn'], {
    cwd: directory,
    env: { ...process.env, NODE_ENV: 'production' }, // Tests that build a release set another one.
  });
  stamp.write(digest);
}

/**
 * `dist/program` has what a release has. Tests start thousands of processes, and one from a bundle takes half the
 * processor time of one that loads a thousand modules.
 */
async function bundlePrograms() {
  const directory = join(root, 'dist/program');
  const digest = digestTimes([
    'pnpm-lock.yaml',
    ...filesUnder('scripts/release'),
    'packages/console/dist/static/index.html',
    ...packagesBuilt().flatMap((name) => [`packages/${name}/package.json`, `packages/${name}/dist/.tsbuildinfo`]),
  ]);
  const stamp = new Stamp('program');
  if (stamp.matches(digest) && existsSync(join(directory, 'package.json'))) return;
  console.log('Bundling ...');
  // After the installation: it imports what is installed.
  const { layOutPrograms } = await import('./release/server-package.mjs');
  await layOutPrograms(directory);
  stamp.write(digest);
}

function packagesBuilt() {
  const packages = readdirSync(join(root, 'packages')).sort();
  return packages.filter((name) => existsSync(join(root, 'packages', name, 'tsconfig.json')));
}

function isInput(path) {
  return (
    path.endsWith('.ts') || path.endsWith('.tsx') || path.endsWith('tsconfig.json') || path.endsWith('package.json')
  );
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  await install();
  await build();
}
