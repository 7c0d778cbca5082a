/** The totals of a run over many seeds; kept in a file, so that a stopped run can continue. */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { SimResult } from './simulation.ts';

interface Failure {
  readonly seed: number;
  readonly property: string;
  readonly detail: string;
}

type Sums = Record<string, number>;

export interface Totals {
  readonly version: 3;
  /** Seeds from here on to `next`, `step` apart, are done. */
  readonly first: number;
  readonly step: number;
  next: number;
  seconds: number;
  simulatedMs: number;
  steps: number;
  readonly figures: Sums;
  readonly counts: Sums;
  readonly fired: Sums;
  readonly failures: Failure[];
}

export function newTotals(first: number, step: number, faultKinds: readonly string[]): Totals {
  const fired = Object.fromEntries(faultKinds.map((kind) => [kind, 0]));
  return {
    version: 3,
    first,
    step,
    next: first,
    seconds: 0,
    simulatedMs: 0,
    steps: 0,
    figures: {},
    counts: {},
    fired,
    failures: [],
  };
}

export function addResult(totals: Totals, result: SimResult): void {
  totals.simulatedMs += result.simulatedMs;
  totals.steps += result.steps;
  add(totals.figures, Object.entries(result.figures));
  add(totals.counts, Object.entries(result.counts));
  add(totals.fired, result.fired);
  const { seed, failure } = result;
  if (failure !== undefined) totals.failures.push({ seed, property: failure.property, detail: failure.detail });
}

function add(sums: Sums, more: Iterable<readonly [string, number]>): void {
  for (const [name, count] of more) sums[name] = (sums[name] ?? 0) + count;
}

/** How many seeds are done. */
export function seedsOf({ first, next, step }: Pick<Totals, 'first' | 'next' | 'step'>): number {
  return (next - first) / step;
}

/** Kinds of faults that never happened. */
export function neverFired(totals: Totals): readonly string[] {
  return Object.keys(totals.fired).filter((kind) => totals.fired[kind] === 0);
}

export function readTotals(file: string, faultKinds: readonly string[]): Totals | undefined {
  try {
    const totals: Totals = JSON.parse(readFileSync(file, 'utf8'));
    return totals.version === 3
      ? { ...totals, fired: { ...newTotals(0, 1, faultKinds).fired, ...totals.fired } }
      : undefined;
  } catch {
    return undefined;
  }
}

export function writeTotals(file: string, totals: Totals): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(`${file}.new`, JSON.stringify(totals));
  renameSync(`${file}.new`, file);
}

export function progressLine(totals: Totals, seedsNow: number, secondsNow: number): string {
  const { counts, simulatedMs, failures, fired, figures } = totals;
  const rate = (seedsNow / Math.max(0.001, secondsNow)).toFixed(1);
  const hours = (simulatedMs / 3_600_000).toFixed(2);
  return (
    `${seedsOf(totals)} seeds, ${rate} seeds/s, ${hours} h simulated, ${sumOf(counts)} operations, ` +
    `${sumOf(fired)} faults, ${listed(figures)}, ${failures.length} failures`
  );
}

export function summary(totals: Totals): string {
  const lines = [
    `operations: ${listed(totals.counts)}`,
    listed(totals.figures),
    `steps: ${totals.steps} in ${totals.seconds.toFixed(0)} s`,
    'faults:',
    ...Object.entries(totals.fired).map(([kind, count]) => `  ${kind.padEnd(32)} ${count}`),
  ];
  return lines.join('\n');
}

function sumOf(sums: Sums): number {
  return Object.values(sums).reduce((sum, count) => sum + count, 0);
}

function listed(sums: Sums): string {
  return Object.entries(sums)
    .map(([name, count]) => `${name} ${count}`)
    .join(', ');
}
