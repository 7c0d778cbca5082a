import type { Memory } from './memory.ts';
import type { Judged } from './report.ts';
import type { Sample, SoakReport } from './soak.ts';

/** From the first rest to the later ones. */
const GROWTH_MAX = 0.05;
/** Descriptors go up and down with files of the engine and of the log; a leak has no bound. */
const DESCRIPTORS_MORE_MAX = 20;
/** Errors of the load, of all its operations. */
const ERRORS_MAX = 0.01;

/**
 * Judges by the rests. A leak grows from rest to rest; what merely varies does not. So a process fails only if the
 * lower half of its later rests is above the bound: a single low one proves nothing, nor a single high one.
 */
export function judgeSoak(report: SoakReport): readonly Judged[] {
  const [first, ...later] = report.samples.filter(({ resting }) => resting);
  if (first === undefined || later.length === 0) throw new Error('a soak needs two rests at the least');
  const processes = Object.keys(first.memory);
  return [
    ...processes.map((name) => judgeMemory(name, first, later)),
    ...processes.map((name) => judgeDescriptors(name, first, later)),
    judgeErrors(report),
  ];
}

function judgeMemory(name: string, first: Sample, later: readonly Sample[]): Judged {
  const before = live(of(name, first));
  const after = lowerMedian(later.map((sample) => live(of(name, sample))));
  const growth = after / before - 1;
  return {
    what: `${name}: live memory grows by no more than ${GROWTH_MAX * 100} %`,
    found: `${mebibytes(before)} at first, ${mebibytes(after)} later: ${(growth * 100).toFixed(1)} %`,
    holds: growth <= GROWTH_MAX,
  };
}

function judgeDescriptors(name: string, first: Sample, later: readonly Sample[]): Judged {
  const count = (sample: Sample): number => of(name, sample).descriptors;
  const after = lowerMedian(later.map(count));
  return {
    what: `${name}: no descriptor is left behind`,
    found: `${count(first)} at first, ${after} later`,
    holds: after <= count(first) + DESCRIPTORS_MORE_MAX,
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

/** On the heap and in buffers beside it. */
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

/** Of an even number of values, the lower one of the two in the middle. */
function lowerMedian(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? 0;
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}
