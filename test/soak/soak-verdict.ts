import type { Memory } from './memory.ts';
import type { Judged } from './report.ts';
import type { Sample, SoakReport } from './soak.ts';

/** Growth from the first half of the rests to the second half. */
const GROWTH_MAX = 0.05;
/** The number of descriptors varies with the files of the engine and of the log. */
const DESCRIPTORS_MORE_MAX = 5;
/** The fraction of the load's operations that may fail. */
const ERRORS_MAX = 0.01;

/**
 * Judges by the rests. The log's tail is truncated now and then, so memory rises and falls in a sawtooth, and a leak
 * raises its lowest points as well. Therefore the minimum of the first half is compared with the minimum of the second
 * half.
 */
export function judgeSoak(report: SoakReport): readonly Judged[] {
  const rests = report.samples.filter(({ resting }) => resting);
  const middle = Math.floor(rests.length / 2);
  const halves = { before: rests.slice(0, middle), after: rests.slice(middle) };
  const [first] = halves.before;
  if (first === undefined) throw new Error('a soak needs two rests at the least');
  const processes = Object.keys(first.memory);
  return [
    judgeWarmUp(report, first),
    ...processes.map((name) => judgeMemory(name, halves)),
    ...processes.map((name) => judgeDescriptors(name, halves)),
    judgeErrors(report),
  ];
}

interface Halves {
  readonly before: readonly Sample[];
  readonly after: readonly Sample[];
}

function judgeWarmUp({ options }: SoakReport, first: Sample): Judged {
  return {
    what: `the warm-up filled every cache, with ${options.warmUpOperations} operations; else take more --minutes`,
    found: `${first.operations} operations in ${first.minutes.toFixed(1)} minutes`,
    holds: first.operations >= options.warmUpOperations,
  };
}

function judgeMemory(name: string, { before, after }: Halves): Judged {
  const least = (samples: readonly Sample[]): number => Math.min(...samples.map((sample) => live(of(name, sample))));
  const growth = least(after) / least(before) - 1;
  return {
    what: `${name}: live memory grows by no more than ${GROWTH_MAX * 100} %`,
    found: `${mebibytes(least(before))} in the first half, ${mebibytes(least(after))} in the second: ${(growth * 100).toFixed(1)} %`,
    holds: growth <= GROWTH_MAX,
  };
}

function judgeDescriptors(name: string, { before, after }: Halves): Judged {
  const least = (samples: readonly Sample[]): number => Math.min(...samples.map((each) => of(name, each).descriptors));
  return {
    what: `${name}: no descriptor is left behind`,
    found: `${least(before)} in the first half, ${least(after)} in the second`,
    holds: least(after) <= least(before) + DESCRIPTORS_MORE_MAX,
  };
}

function judgeErrors({ done, codes }: SoakReport): Judged {
  const operations = sum(Object.values(done));
  const errors = sum(Object.values(codes));
  return {
    what: `the load is served: at most ${ERRORS_MAX * 100} % of it fail`,
    found: `${operations} operations ${JSON.stringify(done)}, ${errors} errors ${JSON.stringify(codes)}`,
    holds: operations > 0 && errors <= ERRORS_MAX * operations,
  };
}

/** The heap plus external buffers. */
export function live({ heapUsed, external }: Memory): number {
  return heapUsed + external;
}

export function mebibytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}

function of(name: string, { memory }: Sample): Memory {
  const found = memory[name];
  if (found === undefined) throw new Error(`${name} was not measured`);
  return found;
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}
