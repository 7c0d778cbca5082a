/**
 * The graph of which transaction must come before which.
 *
 * P1. Every edge is certain: in each serial order that explains the reads, `from` comes before `to`.
 * P2. The edges are complete: if they have no cycle, and the lists have no fault, each order of the transactions that
 *     follows the edges explains all reads. Such an order puts the appends of a key into the order of its longest
 *     version, unread appends after them, and each read between the last append that it saw and the first one that it
 *     missed.
 * P3. Of the real-time order, only edges that do not follow from others are kept: a transaction has an edge from each
 *     transaction that ended before it began, unless another one both began and ended in between. These are as many per
 *     transaction as are in progress at a time.
 */
import { Graph, RW, SESSION, TIME, WR, WW } from './graph.ts';
import type { TxnRecord } from './history.ts';
import type { KeyHistory, Lists } from './lists.ts';

/** Undefined if there are more than `edgesMax` edges. */
export function dependencies(
  history: readonly TxnRecord[],
  lists: Lists,
  { edgesMax }: { readonly edgesMax: number },
): Graph | undefined {
  const graph = new Graph(history.length);
  for (const key of lists.keys) {
    if (key.usable) dataEdges(graph, key, lists.committed, edgesMax);
    if (graph.edges > edgesMax) return undefined;
  }
  const members = [...history.keys()].filter((txn) => lists.committed[txn]);
  const byClient = new Map<string | number, number[]>();
  for (const txn of members) {
    const client = history[txn]?.c ?? '';
    const mine = byClient.get(client);
    if (mine === undefined) byClient.set(client, [txn]);
    else mine.push(txn);
  }
  for (const mine of byClient.values()) orderEdges(graph, history, mine, SESSION);
  orderEdges(graph, history, members, TIME);
  return graph.edges > edgesMax ? undefined : graph;
}

/** The transactions whose appends to a key took effect, but that no read shows. */
export function unseenWriters({ longest, writers }: KeyHistory, committed: readonly boolean[]): readonly UnseenWrite[] {
  const seen = new Set(longest);
  const unseen = new Map<number, UnseenWrite>();
  for (const [element, { txn }] of writers) {
    if (committed[txn] && !seen.has(element) && !unseen.has(txn)) unseen.set(txn, { txn, element });
  }
  return [...unseen.values()];
}

export interface UnseenWrite {
  readonly txn: number;
  readonly element: string;
}

function dataEdges(graph: Graph, key: KeyHistory, committed: readonly boolean[], edgesMax: number): void {
  const { longest, reads, writers } = key;
  // Elements without a transaction that took effect are already reported as faults. The order continues over them.
  const writerOf = (i: number): number | undefined => {
    const txn = writers.get(longest[i] ?? '')?.txn;
    return txn !== undefined && committed[txn] ? txn : undefined;
  };
  let last: number | undefined;
  for (let i = 0; i < longest.length; i++) {
    const txn = writerOf(i);
    if (txn === undefined) continue;
    if (last !== undefined) graph.add({ from: last, to: txn, kind: WW, key: key.key, element: longest[i] ?? '' });
    last = txn;
  }
  const unseen = unseenWriters(key, committed);
  if (last !== undefined) {
    for (const { txn, element } of unseen) graph.add({ from: last, to: txn, kind: WW, key: key.key, element });
  }
  for (const { txn, external } of reads) {
    if (graph.edges > edgesMax) return;
    const saw = writerOf(external - 1);
    const missed = writerOf(external);
    const at = (i: number): string => longest[i] ?? '';
    if (saw !== undefined) graph.add({ from: saw, to: txn, kind: WR, key: key.key, element: at(external - 1) });
    if (missed !== undefined) graph.add({ from: txn, to: missed, kind: RW, key: key.key, element: at(external) });
    if (external < longest.length) continue;
    for (const { txn: to, element } of unseen) graph.add({ from: txn, to, kind: RW, key: key.key, element });
  }
}

/** P3. Transactions that touch in time are concurrent. */
function orderEdges(
  graph: Graph,
  history: readonly TxnRecord[],
  members: readonly number[],
  kind: typeof SESSION | typeof TIME,
): void {
  const begin = (txn: number): number => history[txn]?.t0 ?? 0;
  const end = (txn: number): number => history[txn]?.t1 ?? Number.POSITIVE_INFINITY;
  const byBegin = members.toSorted((a, b) => begin(a) - begin(b));
  const byEnd = members.filter((txn) => end(txn) < Number.POSITIVE_INFINITY).sort((a, b) => end(a) - end(b));
  const frontier = new Set<number>();
  let ended = 0;
  for (const txn of byBegin) {
    for (let next = byEnd[ended]; next !== undefined && end(next) < begin(txn); next = byEnd[++ended]) {
      for (const before of frontier) if (end(before) < begin(next)) frontier.delete(before);
      frontier.add(next);
    }
    for (const before of frontier) graph.addOrder(before, txn, kind);
  }
}
