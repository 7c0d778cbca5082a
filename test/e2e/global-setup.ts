import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** Nodes under test run the built program, so that is brought up to date first. */
export function setup(): void {
  const root = fileURLToPath(new URL('../..', import.meta.url));
  execFileSync(process.execPath, ['scripts/build.mjs'], { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] });
}
