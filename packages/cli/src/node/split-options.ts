import type { RangeOptions } from '@remora/dataserver';
import type { NodeOptions } from '../node-options.ts';

/** When ranges of this node are split without anybody asking for it: never, unless that is switched on. */
export function splitOptions(options: NodeOptions): Pick<RangeOptions, 'splitSizes' | 'splitLoads'> {
  if (!options.autoSplit) return {};
  return {
    splitSizes: {
      checkBytes: options.splitCheckSize,
      splitBytes: options.splitSize,
      maxBytes: options.rangeSizeMax,
    },
    splitLoads: {
      requestsPerS: options.splitRequestsPerSecond,
      bytesPerS: options.splitBytesPerSecond,
      holdMs: options.splitLoadTime,
    },
  };
}
