// Lays out the two releases that the test of upgrades runs, both from this tree.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { root } from '../../../scripts/lib.mjs';
import { layOutRelease } from '../../../scripts/release/server-package.mjs';

export const NAMES = { older: '0.1.0', newer: '0.2.0' };

/** Returns the folder that has them. The packages must have been built. */
export async function layOutReleases() {
  const directory = join(root, 'test/dist/releases');
  mkdirSync(directory, { recursive: true });
  for (const name of Object.values(NAMES)) await layOutRelease(join(directory, name), name);
  return directory;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  console.log(JSON.stringify({ directory: await layOutReleases(), names: NAMES }));
}
