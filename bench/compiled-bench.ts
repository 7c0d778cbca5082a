/** The compiled programs of the benchmark, in this tree and in a baseline, which is measured with its own SDK. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** Trees from before the benchmark had a folder of its own compiled it below `test`; they can be baselines, too. */
const FOLDERS = ['bench/dist/bench', 'test/dist/bench'];

/** The path of a program (`raft/recovery-main.js`) in a working tree whose benchmark has been compiled. */
export function compiledBench(root: string, program: string): string {
  const paths = FOLDERS.map((folder) => join(root, folder, program));
  const path = paths.find((candidate) => existsSync(candidate));
  if (path === undefined) throw new Error(`${paths[0]} is missing: run "npx tsc -p bench" in ${root}`);
  return path;
}
