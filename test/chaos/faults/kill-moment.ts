import { type FSWatcher, watch } from 'node:fs';
import { join } from 'node:path';
import type { Random } from '@remora/base';
import type { NodeProcess } from '../../e2e/node-process.ts';

/**
 * What the node was doing when it was killed:
 *  - `append`: it had just written to its log, and the sync was in progress or just over;
 *  - `apply`: up to a few milliseconds later: commit, apply, answers;
 *  - `checkpoint`: it had just written to LevelDB, in the middle of a checkpoint;
 *  - `any`: none of these happened in time.
 */
export type Moment = 'append' | 'apply' | 'checkpoint' | 'any';

const PATIENCE_MS = 4_000;
const APPLY_SPREAD_MS = 4;

/** Kills the node at such a moment. Resolves to the actual moment. */
export function killAt(
  node: NodeProcess,
  { moment, random }: { readonly moment: Exclude<Moment, 'any'>; readonly random: Random },
): Promise<Moment> {
  const dir = join(node.dataDir, moment === 'checkpoint' ? 'engine' : 'log');
  return new Promise((resolve) => {
    let watcher: FSWatcher | undefined;
    let over = false;
    const strike = (as: Moment): void => {
      if (over) return;
      over = true;
      watcher?.close();
      clearTimeout(patience);
      if (node.running) node.signal('SIGKILL');
      resolve(as);
    };
    const patience = setTimeout(() => strike('any'), PATIENCE_MS);
    // Skips the first few writes, so that not every kill hits the first block of a checkpoint.
    let skip = random.int(5);
    watcher = watch(dir, () => {
      if (skip-- > 0) return;
      if (moment === 'apply') setTimeout(() => strike('apply'), random.int(APPLY_SPREAD_MS + 1));
      else strike(moment);
    });
  });
}
