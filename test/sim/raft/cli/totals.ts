/** What a run over many seeds adds up to; kept in a file, so that it can go on after it was stopped. */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { newCounts, type OperationCounts } from '../operations.ts';
import type { RunResult } from '../run.ts';
import { FAULTS } from '../schedule.ts';

export interface Failure {
  readonly seed: number;
  readonly property: string;
  readonly detail: string;
}

export interface Totals {
  readonly version: 1;
  /** Seeds from here on to `next` are done. */
  readonly first: number;
  next: number;
  seconds: number;
  simulatedMs: number;
  steps: number;
  elections: number;
  snapshots: number;
  snapshotsBroken: number;
  readonly counts: OperationCounts;
  readonly fired: Record<string, number>;
  readonly failures: Failure[];
}

export function newTotals(first: number): Totals {
  return {
    version: 1,
    first,
    next: first,
    seconds: 0,
    simulatedMs: 0,
    steps: 0,
    elections: 0,
    snapshots: 0,
    snapshotsBroken: 0,
    counts: newCounts(),
    fired: Object.fromEntries(FAULTS.map((fault) => [fault.kind, 0])),
    failures: [],
  };
}

export function addResult(totals: Totals, result: Omit<RunResult, 'schedule'>): void {
  totals.simulatedMs += result.simulatedMs;
  totals.steps += result.steps;
  totals.elections += result.elections;
  totals.snapshots += result.snapshots;
  totals.snapshotsBroken += result.snapshotsBroken;
  for (const [kind, count] of result.fired) totals.fired[kind] = (totals.fired[kind] ?? 0) + count;
  for (const key of Object.keys(totals.counts) as (keyof OperationCounts)[]) totals.counts[key] += result.counts[key];
  const { seed, failure } = result;
  if (failure !== undefined) totals.failures.push({ seed, property: failure.property, detail: failure.detail });
}

/** Kinds of faults that never happened. */
export function neverFired(totals: Totals): readonly string[] {
  return Object.keys(totals.fired).filter((kind) => totals.fired[kind] === 0);
}

export function readTotals(file: string): Totals | undefined {
  try {
    const totals: Totals = JSON.parse(readFileSync(file, 'utf8'));
    return totals.version === 1 ? { ...totals, fired: { ...newTotals(0).fired, ...totals.fired } } : undefined;
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
  const { counts, simulatedMs, failures, next, first } = totals;
  const faults = Object.values(totals.fired).reduce((sum, count) => sum + count, 0);
  const operations = Object.values(counts).reduce((sum, count) => sum + count, 0);
  const rate = (seedsNow / Math.max(0.001, secondsNow)).toFixed(1);
  const hours = (simulatedMs / 3_600_000).toFixed(2);
  return (
    `${next - first} seeds, ${rate} seeds/s, ${hours} h simulated, ${operations} operations, ` +
    `${faults} faults, ${totals.elections} elections, ${failures.length} failures`
  );
}

export function summary(totals: Totals): string {
  const { counts } = totals;
  const lines = [
    `operations: ${Object.entries(counts)
      .map(([name, count]) => `${name} ${count}`)
      .join(', ')}`,
    `snapshots: ${totals.snapshots} installed, ${totals.snapshotsBroken} broken off`,
    `steps: ${totals.steps} in ${totals.seconds.toFixed(0)} s`,
    'faults:',
    ...Object.entries(totals.fired).map(([kind, count]) => `  ${kind.padEnd(32)} ${count}`),
  ];
  return lines.join('\n');
}
