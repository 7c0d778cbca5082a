import type { ChaosResult } from '../run.ts';

/** The result of a run as text. */
export function summaryOf({
  seed,
  nodes,
  loadMs,
  judged,
  faults,
  unavailable,
  missing,
  findings,
}: ChaosResult): string {
  const lines = [`seed ${seed}: ${nodes} nodes, ${Math.round(loadMs / 1_000)} s under load, ${faults.length} faults`];
  lines.push(`faults: ${counted(faults.map(({ kind }) => kind))}`);
  if (missing.length > 0) lines.push(`did not happen: ${missing.join(', ')}`);
  for (const why of unavailable) lines.push(`left out: ${why}`);
  if (judged !== undefined) {
    const { operations, byOutcome, byWorkload, byCode, outages } = judged.figures;
    const { done, unknown, refused } = byOutcome;
    const [longest] = outages;
    lines.push(
      `${operations} operations: ${done} done, ${refused} refused, ${unknown} of unknown outcome; ${judged.rounds} rounds judged`,
      `by workload: ${listed(byWorkload)}`,
      `errors: ${listed(byCode)}`,
      longest === undefined
        ? 'writes were acknowledged all the time'
        : `longest time without an acknowledged write: ${longest.ms} ms, from ${(longest.fromMs / 1_000).toFixed(1)} s on`,
    );
  }
  if (findings.length === 0) lines.push('every promise held');
  else
    lines.push(
      `${findings.length} PROMISES BROKEN OR UNDECIDED:`,
      ...findings.map(({ property, detail }) => `${property}: ${detail}`),
    );
  return lines.join('\n');
}

export function counted(names: readonly string[]): string {
  const counts: Record<string, number> = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return listed(counts);
}

export function listed(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .map(([name, count]) => `${name} ${count}`)
    .join(', ');
}
