import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/**
 * Nodes under test, and the clients of chaos runs, are built programs. This builds them first if they are out of date.
 */
export function setup(): void {
  const cwd = fileURLToPath(new URL('../..', import.meta.url));
  const run = (...args: readonly string[]) =>
    execFileSync(process.execPath, args, { cwd, stdio: ['ignore', 'inherit', 'inherit'] });
  run('scripts/build.mjs');
  run('node_modules/typescript/bin/tsc', '-p', 'test/chaos');
}
