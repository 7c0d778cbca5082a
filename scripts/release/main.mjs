// `npm run release [-- --out DIRECTORY] [--allow-changes]`: makes everything that is published, from a clean tree.
//
// RL1. What is published is what a commit contains: a tree with changes is refused.
// RL2. The same commit makes the same bytes, with the same versions of npm and dpkg-deb.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { build } from '../build.mjs';
import { install } from '../install.mjs';
import { readJson, root } from '../lib.mjs';

const { values } = parseArgs({
  options: { out: { type: 'string', default: 'dist/release' }, 'allow-changes': { type: 'boolean', default: false } },
});

function git(...args) {
  return execFileSync('git', args, { cwd: root }).toString().trim();
}

const changed = git('status', '--porcelain');
if (changed !== '' && !values['allow-changes']) {
  console.error(`The tree has changes; commit them first, or use --allow-changes for a trial:\n${changed}`);
  process.exit(2);
}

await install();
await build();
// After the installation: these import what is installed.
const { packSdk } = await import('./sdk-package.mjs');
const { packServer } = await import('./server-package.mjs');
const { packDebian } = await import('./debian-package.mjs');

const out = resolve(root, values.out);
rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
const server = join(out, 'remora-server');
const files = [await packSdk(join(out, 'remora')), await packServer(server)];
if (hasDpkg()) {
  const { version } = readJson('packages/cli/package.json');
  files.push(...packDebian({ server, version, out, epochSeconds: Number(git('log', '-1', '--format=%ct')) }));
} else console.error('There is no dpkg-deb on this machine: no Debian packages were made.');

const sums = files.map((file) => `${createHash('sha256').update(readFileSync(file)).digest('hex')}  ${basename(file)}`);
writeFileSync(join(out, 'SHA256SUMS'), `${sums.join('\n')}\n`);
console.log(`${out}:\n${sums.join('\n')}`);

function hasDpkg() {
  try {
    execFileSync('dpkg-deb', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
