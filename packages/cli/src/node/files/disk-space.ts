import { statfs } from 'node:fs';
import type { Logger } from '@remora/base';
import type { NodeSpace } from '@remora/protocol';

/**
 * How large the disk of a directory is and what is free of it, as of the last time that this was called: a look at the
 * disk may take long, and nobody waits for it.
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
