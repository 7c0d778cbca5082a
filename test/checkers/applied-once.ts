/**
 * A quick check of lists to which unique elements were appended. It needs one pass and handles histories of any length.
 * It finds the commonest faults and names them; `checkLinearizable` with the list model finds all faults.
 *
 * A1. No read shows an element twice, or an element that nobody appended.
 * A2. Every read is a prefix of every longer one: elements keep their order and do not disappear.
 * A3. A read that begins after an append was acknowledged shows its element. Therefore the last read shows all
 *     acknowledged elements.
 * A4. An element is not read before its append began.
 */
import { type HistoryRecord, partitionByKey } from './history.ts';
import { elementsOf } from './models.ts';

/** The faults, one line each, at most one of each kind per key. Empty if all is well. */
export function checkAppliedOnce(history: readonly HistoryRecord[]): readonly string[] {
  return [...partitionByKey(history)].flatMap(([key, ops]) => faultsOf(ops).map((fault) => `key "${key}": ${fault}`));
}

function faultsOf(ops: readonly HistoryRecord[]): readonly string[] {
  const appends = new Map<string, HistoryRecord>();
  for (const op of ops) {
    if (op.op !== 'append') continue;
    const element = String(op.v);
    if (appends.has(element)) return [`the test appends ${element} twice: elements must be unique`];
    appends.set(element, op);
  }
  const reads = ops.filter((op) => op.op === 'get' && op.t1 !== null);
  const longest = reads.reduce<readonly string[]>((best, op) => {
    const elements = elementsOf(op);
    return elements.length > best.length ? elements : best;
  }, []);
  const faults = [
    repeated(longest),
    reads.map((op) => notPrefix(elementsOf(op), longest)).find(isFault),
    unknownOrEarly(reads, appends),
    missing(reads, appends, longest),
  ];
  return faults.filter(isFault);
}

function isFault(fault: string | undefined): fault is string {
  return fault !== undefined;
}

function repeated(elements: readonly string[]): string | undefined {
  const seen = new Set<string>();
  for (const element of elements) {
    if (seen.has(element)) return `${element} was applied twice`;
    seen.add(element);
  }
  return undefined;
}

function notPrefix(elements: readonly string[], longest: readonly string[]): string | undefined {
  const at = elements.findIndex((element, i) => element !== longest[i]);
  return at < 0 ? undefined : `place ${at} of the list was read as ${elements[at]} and as ${longest[at]}`;
}

/**
 * Because reads are prefixes (A2), it suffices to look at the last element of each. The rest of the longest one is
 * covered as well.
 */
function unknownOrEarly(
  reads: readonly HistoryRecord[],
  appends: ReadonlyMap<string, HistoryRecord>,
): string | undefined {
  const checked = new Map<string, number>();
  for (const read of reads.toSorted((a, b) => (a.t1 ?? 0) - (b.t1 ?? 0))) {
    for (const element of elementsOf(read).toReversed()) {
      if (checked.has(element)) break;
      checked.set(element, read.t1 ?? 0);
      const append = appends.get(element);
      if (append === undefined) return `${element} was read, and nobody appended it`;
      if (append.t0 > (read.t1 ?? 0)) return `${element} was read before its append began`;
    }
  }
  return undefined;
}

function missing(
  reads: readonly HistoryRecord[],
  appends: ReadonlyMap<string, HistoryRecord>,
  longest: readonly string[],
): string | undefined {
  const place = new Map(longest.map((element, i) => [element, i]));
  const acknowledged = [...appends].filter(([, op]) => op.t1 !== null && op.ok);
  acknowledged.sort(([, a], [, b]) => (a.t1 ?? 0) - (b.t1 ?? 0));
  let next = 0;
  let needed = 0; // A read must show the list up to the last element that was acknowledged before it began.
  let neededFor = '';
  for (const read of reads.toSorted((a, b) => a.t0 - b.t0)) {
    for (let each = acknowledged[next]; each !== undefined; each = acknowledged[next]) {
      const [element, append] = each;
      if ((append.t1 ?? 0) >= read.t0) break;
      next += 1;
      const at = place.get(element) ?? Number.POSITIVE_INFINITY;
      if (at + 1 > needed) [needed, neededFor] = [at + 1, element];
    }
    if (elementsOf(read).length < needed) {
      return `${neededFor} was acknowledged, and a read by client ${read.c} that began later does not show it`;
    }
  }
  return undefined;
}
