// What the published packages have in common.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readJson } from '../lib.mjs';

/** The oldest Node that is supported: see `engines`. */
export const TARGET = 'node20';

/** Files of the repository that every package contains. */
export const common = ['LICENSE', 'CHANGELOG.md'];

/** The fields that a published manifest takes from one of the workspace, and where the repository is, if it says so. */
export function published(path) {
  const { name, version, description, license, engines } = readJson(path);
  const { repository } = readJson('package.json');
  return { name, version, description, license, ...(repository === undefined ? {} : { repository }), engines };
}

export function writeJson(path, value) {
  writeFileSync(path, `${JSON.stringify(value, null, 2)}\n`);
}

/** Makes the tarball of a package's directory, beside it, and returns its path. npm gives all files the same time. */
export function pack(directory) {
  const output = execFileSync('npm', ['pack', '--json', '--pack-destination', dirname(directory)], {
    cwd: directory,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [{ filename }] = JSON.parse(output.toString());
  return join(dirname(directory), filename);
}
