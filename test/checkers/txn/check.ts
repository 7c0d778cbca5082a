/**
 * Checks whether transactions that append to lists and read them are strictly serializable: as if each had happened at
 * one moment between its beginning and its end. The method follows Elle (Kingsbury & Alvaro, "Elle: inferring isolation
 * anomalies from experimental observations", VLDB 2020). Its time is almost linear in the history.
 *
 * E1. `violation` is certain: every anomaly excludes every explanation (P1).
 * E2. `ok` is certain: there is an explanation (P2). Nothing is missed, because lists reveal the complete order of
 *     their writes.
 * E3. A history that breaks the rules of histories (T1), or needs more than `edgesMax`, is `undecided`.
 */

import { type CycleType, findCycles } from './cycles.ts';
import { dependencies, unseenWriters } from './dependencies.ts';
import { describeCycle, describeFault } from './describe.ts';
import { RW, SESSION, TIME, WR, WW } from './graph.ts';
import type { TxnRecord } from './history.ts';
import { type Fault, type ListAnomaly, type Lists, quote, readLists } from './lists.ts';

export type AnomalyType = Exclude<ListAnomaly, 'unusable-history'> | 'lost-append' | CycleType;

interface Anomaly {
  readonly type: AnomalyType;
  /** For people. */
  readonly explanation: string;
  readonly transactions: readonly TxnRecord[];
}

export interface TxnVerdict {
  readonly result: 'ok' | 'violation' | 'undecided';
  /** The most serious first, one per type, in the smallest form that was found. */
  readonly anomalies: readonly Anomaly[];
  /** For people: all anomalies. Empty if all is well. */
  readonly explanation: string;
}

export interface TxnCheckOptions {
  /** What the order must respect in addition to the reads. Strict serializability by default. */
  readonly level?: 'serializable' | 'session' | 'strict';
  /** Each edge takes some 100 bytes. */
  readonly edgesMax?: number;
}

const EDGES_MAX = 5_000_000;
const ORDERS = { serializable: 0, session: SESSION, strict: SESSION | TIME } as const;

export function checkTransactions(history: readonly TxnRecord[], options: TxnCheckOptions = {}): TxnVerdict {
  const level = options.level ?? 'strict';
  const edgesMax = options.edgesMax ?? EDGES_MAX;
  const lists = readLists(history);
  const faults = [...lists.faults, ...(level === 'strict' ? lostAppends(history, lists) : [])];
  const graph = dependencies(history, lists, { edgesMax });
  const cycles = graph === undefined ? [] : findCycles(graph, WW | WR | RW | ORDERS[level]);
  const anomalies: Anomaly[] = [];
  for (const { type, detail, transactions } of faults) {
    if (type === 'unusable-history' || anomalies.some((known) => known.type === type)) continue;
    anomalies.push({ type, explanation: describeFault({ type, detail, transactions }), transactions });
  }
  for (const cycle of cycles) {
    const transactions = cycle.edges.flatMap(({ from }) => history[from] ?? []);
    anomalies.push({ type: cycle.type, explanation: describeCycle(cycle, history), transactions });
  }
  if (anomalies.length > 0) {
    return { result: 'violation', anomalies, explanation: anomalies.map(({ explanation }) => explanation).join('\n') };
  }
  const unusable = faults.find(({ type }) => type === 'unusable-history'); // E3
  if (unusable !== undefined) return undecided(unusable.detail);
  return graph === undefined
    ? undecided(`more than ${edgesMax} dependencies; give it more, or shorter histories`)
    : { result: 'ok', anomalies, explanation: '' };
}

function undecided(explanation: string): TxnVerdict {
  return { result: 'undecided', anomalies: [], explanation: `undecided: ${explanation}` };
}

/** Acknowledged appends that no read shows, although a read of the key began later. */
function lostAppends(history: readonly TxnRecord[], lists: Lists): readonly Fault[] {
  return lists.keys.flatMap((key): readonly Fault[] => {
    if (!key.usable) return [];
    const reads = key.reads.flatMap(({ txn }) => history[txn] ?? []);
    const last = reads.reduce<TxnRecord | undefined>(
      (best, read) => (read.t0 > (best?.t0 ?? Number.NEGATIVE_INFINITY) ? read : best),
      undefined,
    );
    if (last === undefined) return [];
    for (const { txn, element } of unseenWriters(key, lists.committed)) {
      const append = history[txn];
      if (append === undefined || append.t1 === null || append.t1 >= last.t0) continue;
      const what = `${quote(element)} was appended to ${quote(key.key)} and acknowledged`;
      const detail = `${what}; a read that began later does not show it, nor does any other`;
      return [{ type: 'lost-append', detail, transactions: [append, last] }];
    }
    return [];
  });
}
