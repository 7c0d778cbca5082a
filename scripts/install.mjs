// Installs the locked dependencies with the pinned pnpm, unless that has been done.
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { digestContents, must, readJson, root, Stamp } from './lib.mjs';

export async function install() {
  const digest = digestContents(manifests());
  const stamp = new Stamp('install');
  if (stamp.matches(digest)) return;
  const { packageManager } = readJson('package.json');
  console.log(`Installing dependencies with ${packageManager} ...`);
  await must('install', 'npx', ['--yes', packageManager, 'install', '--frozen-lockfile'], {
    // pnpm asks before it rebuilds node_modules; there is nobody to ask here.
    env: { ...process.env, CI: 'true' },
  });
  stamp.write(digest);
}

function manifests() {
  const packages = readdirSync(join(root, 'packages')).sort();
  const candidates = [
    'package.json',
    'pnpm-lock.yaml',
    'pnpm-workspace.yaml',
    'test/package.json',
    'bench/package.json',
    'examples/package.json',
    'scripts/docs/package.json',
    'scripts/release/package.json',
    ...packages.map((name) => `packages/${name}/package.json`),
  ];
  return candidates.filter((path) => existsSync(join(root, path)));
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await install();
