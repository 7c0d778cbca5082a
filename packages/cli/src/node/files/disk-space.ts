import { statfs } from 'node:fs';
import type { Clock, Logger } from '@remora/base';
import type { NodeSpace } from '@remora/protocol';

/** No disk of a node fills faster. */
const FILLED_BYTES_PER_MS = 2 ** 30 / 1_000;
/** The maximum age of a measurement that is far from the reserve. */
const AGE_MS_MAX = 10_000;

export interface DiskSpaceDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  /** The free space that matters (`--disk-reserve`). */
  readonly reserveBytes: number;
}

/**
 * Returns the size and the free space of the disk with a directory, as of an earlier call: a query of the disk may take
 * long, and callers do not wait for it. The disk is queried again once it could have been filled up to the reserve.
 */
export function diskSpace(path: string, { clock, logger, reserveBytes }: DiskSpaceDeps): () => NodeSpace {
  let known: NodeSpace = { capacityBytes: 0, availableBytes: 0 };
  let lookAtMs = 0;
  let looking = false;
  const look = (): void => {
    if (looking || clock.monotonicMs() < lookAtMs) return;
    looking = true;
    statfs(path, (error, stats) => {
      looking = false;
      if (error !== null) {
        logger.warn({ error: error.message }, 'could not read the free space of the disk');
        return;
      }
      known = { capacityBytes: stats.blocks * stats.bsize, availableBytes: stats.bavail * stats.bsize };
      const leftMs = Math.max(0, known.availableBytes - reserveBytes) / FILLED_BYTES_PER_MS;
      lookAtMs = clock.monotonicMs() + Math.min(AGE_MS_MAX, leftMs);
    });
  };
  look();
  return () => {
    look();
    return known;
  };
}
