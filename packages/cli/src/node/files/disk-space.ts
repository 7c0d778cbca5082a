import { statfs } from 'node:fs';
import type { Logger } from '@remora/base';
import type { NodeSpace } from '@remora/protocol';

/**
 * Returns the size and the free space of the disk with a directory, as of the previous call: a query of the disk may
 * take long, and callers do not wait for it.
 */
export function diskSpace(path: string, logger: Logger): () => NodeSpace {
  let known: NodeSpace = { capacityBytes: 0, availableBytes: 0 };
  let looking = false;
  const look = (): void => {
    if (looking) return;
    looking = true;
    statfs(path, (error, stats) => {
      looking = false;
      if (error === null)
        known = { capacityBytes: stats.blocks * stats.bsize, availableBytes: stats.bavail * stats.bsize };
      else logger.warn({ error: error.message }, 'could not read the free space of the disk');
    });
  };
  look();
  return () => {
    look();
    return known;
  };
}
