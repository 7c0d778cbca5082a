import type { GrowthReport } from './growth.ts';
import type { Judged } from './report.ts';

/** A node's private resident memory. */
const MEMORY_BYTES_MAX = 700 * 2 ** 20;

/**
 * A range that was measured just below the split size is measured again after it has grown by a fraction of that size.
 */
export function restBytesMax({ check, split }: GrowthReport['options']['sizes']): number {
  return split + check / 2;
}

/** What is promised of a growing cluster, whatever the machine. */
export function judgeGrowth(report: GrowthReport): readonly Judged[] {
  const { options, ranges, largestBytes, largestAtEndBytes, failedWrites, read, wrong, gaps, rangesLeft } = report;
  const { values, valueBytes, sizes } = options;
  const rangesMin = Math.floor((values * valueBytes) / restBytesMax(sizes));
  return [
    {
      what: 'ranges split by themselves as they grow',
      found: `${ranges} ranges; their sizes ask for ${rangesMin} at least`,
      holds: ranges >= rangesMin && rangesMin >= 2,
    },
    {
      what: 'no range is ever larger than its maximum',
      found: `the largest had ${mib(largestBytes)} MiB, and ${mib(largestAtEndBytes)} at the end; at most ${mib(sizes.max)}`,
      holds: largestBytes <= sizes.max,
    },
    { what: 'no write fails', found: failedWrites.join('; ') || 'none did', holds: failedWrites.length === 0 },
    { what: 'ranges have neither holes nor overlaps', found: gaps.join('; ') || 'none', holds: gaps.length === 0 },
    ...(rangesLeft === undefined
      ? []
      : [{ what: 'ranges that were emptied are merged', found: `${rangesLeft} ranges`, holds: rangesLeft === 1 }]),
    {
      what: 'what is read back is what was written',
      found: wrong.join('; ') || `${read} values`,
      holds: wrong.length === 0,
    },
  ];
}

export function judgeMemory({ memoryBytes, mappedBytes }: GrowthReport): Judged {
  return {
    what: 'a node stays within its memory',
    found: `at most ${mib(memoryBytes)} MiB of ${mib(MEMORY_BYTES_MAX)}, and ${mib(mappedBytes)} of mapped files`,
    holds: memoryBytes <= MEMORY_BYTES_MAX,
  };
}

export function mib(bytes: number): string {
  return (bytes / 2 ** 20).toFixed(1);
}
