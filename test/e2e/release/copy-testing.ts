import { cpSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { PROGRAM } from '../program.ts';

/**
 * Copies the node for tests of the built package `remora-server`. A link to it would not do: Node looks for `remora`
 * beside the real file.
 */
export function copyTesting(directory: string): void {
  const from = dirname(dirname(PROGRAM));
  cpSync(join(from, 'package.json'), join(directory, 'package.json'));
  cpSync(join(from, 'types'), join(directory, 'types'), { recursive: true });
  for (const file of readdirSync(join(from, 'dist'))) {
    if (file.startsWith('testing')) cpSync(join(from, 'dist', file), join(directory, 'dist', file));
  }
}
