import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

/** Starts Node.js, and has it leave a CPU profile in a directory of this name when it ends. */
export function nodeCommand(profileDir: string | undefined, name: string): readonly [string, ...string[]] {
  if (profileDir === undefined) return [process.execPath];
  const dir = join(profileDir, name);
  mkdirSync(dir, { recursive: true });
  return [process.execPath, '--cpu-prof', `--cpu-prof-dir=${dir}`];
}
