import { CHANGES } from '../changes/range-desk.ts';
import type { Changed } from '../changes/scenario.ts';
import type { Overlap } from '../judges/overlaps.ts';
import type { ChaosResult } from '../run.ts';

/** The result of a run as text. */
export function summaryOf({
  seed,
  nodes,
  loadMs,
  judged,
  changed,
  faults,
  unavailable,
  missing,
  findings,
}: ChaosResult): string {
  const lines = [`seed ${seed}: ${nodes} nodes, ${Math.round(loadMs / 1_000)} s under load, ${faults.length} faults`];
  if (faults.length > 0) lines.push(`faults: ${counted(faults.map(({ kind }) => kind))}`);
  lines.push(...changesOf(changed, judged?.overlaps ?? []));
  if (missing.length > 0) lines.push(`did not happen: ${missing.join(', ')}`);
  for (const why of unavailable) lines.push(`left out: ${why}`);
  if (judged !== undefined && judged.visits.changes > 0) {
    const { letIn, refused, either, changes } = judged.visits;
    lines.push(
      `${changes} changes of users' rights; requests of these users: ${letIn} let in, ${refused} refused, ${either} during a change`,
    );
  }
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

function changesOf({ done, failed, kills }: Changed, overlaps: readonly Overlap[]): readonly string[] {
  const lines = [`changes of ranges: ${listed(done)}`];
  if (Object.keys(failed).length > 0) lines.push(`which did not come to their end: ${listed(failed)}`);
  if (Object.keys(kills).length > 0) lines.push(`gateways killed: ${listed(kills)}`);
  for (const kind of CHANGES) {
    const met = overlaps.filter(({ change, met }) => change === kind && met > 0);
    if (met.length === 0) continue;
    const each = met.map(({ subject, met, through }) => `${subject} ${met} (${through} through it)`);
    lines.push(`under way during a ${kind}: ${each.join(', ')}`);
  }
  return lines;
}

function counted(names: readonly string[]): string {
  const counts: Record<string, number> = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return listed(counts);
}

function listed(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .map(([name, count]) => `${name} ${count}`)
    .join(', ');
}
