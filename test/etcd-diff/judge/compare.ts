/** Where two answers differ, once revisions are renamed. */
import { type Answer, Exact, Moment, Remaining, shown } from './answers.ts';
import type { RevisionMap } from './revision-map.ts';

export interface Difference {
  /** Where it is in the answer, such as `range.kvs.0.mod`. */
  readonly path: string;
  readonly etcd: Answer;
  readonly remora: Answer;
  /** Why two revisions do not correspond. */
  readonly why?: string;
}

/** For leases that last much longer, on a machine that is busy. */
const REMAINING_SLACK_S = 120;

/** What corresponds is noted in the map. */
export function differences(etcd: Answer, remora: Answer, revisions: RevisionMap): readonly Difference[] {
  const found: Difference[] = [];
  compareInto(found, { path: '', etcd, remora }, revisions);
  return found;
}

function compareInto(found: Difference[], at: Difference, revisions: RevisionMap): void {
  const { path, etcd, remora } = at;
  if (etcd instanceof Exact && remora instanceof Exact) {
    // 0: none, as in the tombstone of an event.
    const none = etcd.revision === 0 || remora.revision === 0;
    const why = none
      ? revisions.moment(etcd.revision, remora.revision)
      : revisions.exact(etcd.revision, remora.revision);
    if (why !== undefined) found.push({ ...at, why });
  } else if (etcd instanceof Moment && remora instanceof Moment) {
    const why = revisions.moment(etcd.revision, remora.revision);
    if (why !== undefined) found.push({ ...at, why });
  } else if (etcd instanceof Remaining && remora instanceof Remaining) {
    if (Math.abs(etcd.seconds - remora.seconds) > REMAINING_SLACK_S) found.push(at);
  } else if (isRecord(etcd) && isRecord(remora)) {
    for (const name of new Set([...Object.keys(etcd), ...Object.keys(remora)])) {
      const below = { path: path === '' ? name : `${path}.${name}`, etcd: etcd[name], remora: remora[name] };
      if (below.etcd === undefined || below.remora === undefined) {
        found.push({ ...below, etcd: below.etcd ?? null, remora: below.remora ?? null, why: 'on one side only' });
      } else compareInto(found, { ...below, etcd: below.etcd, remora: below.remora }, revisions);
    }
  } else if (Array.isArray(etcd) && Array.isArray(remora)) {
    compareLists(found, { path, etcd, remora }, revisions);
  } else if (etcd !== remora) found.push(at);
}

function compareLists(
  found: Difference[],
  {
    path,
    etcd,
    remora,
  }: { readonly path: string; readonly etcd: readonly Answer[]; readonly remora: readonly Answer[] },
  revisions: RevisionMap,
): void {
  if (etcd.length !== remora.length) {
    found.push({ path, etcd, remora, why: `${etcd.length} and ${remora.length} of them` });
    return;
  }
  for (const [i, left] of etcd.entries()) {
    const right = remora[i];
    if (right !== undefined) compareInto(found, { path: `${path}.${i}`, etcd: left, remora: right }, revisions);
  }
}

function isRecord(answer: Answer): answer is { readonly [name: string]: Answer } {
  if (typeof answer !== 'object' || answer === null || Array.isArray(answer)) return false;
  return !(answer instanceof Exact || answer instanceof Moment || answer instanceof Remaining);
}

export function textOfDifference({ path, etcd, remora, why }: Difference): string {
  const reason = why === undefined ? '' : ` (${why})`;
  return `${path === '' ? 'answer' : path}: etcd ${shown(etcd)}, Remora ${shown(remora)}${reason}`;
}
