/** Describes anomalies of transactions. */
import type { Cycle, CycleBase } from './cycles.ts';
import { type Edge, RW, SESSION, TIME, WR, WW } from './graph.ts';
import type { TxnOp, TxnRecord } from './history.ts';
import { type Fault, quote, shown } from './lists.ts';

const MEANING: Readonly<Record<string, string>> = {
  internal: 'a transaction contradicts itself',
  G1a: 'aborted read',
  G1b: 'intermediate read',
  'duplicate-elements': 'an append was applied twice',
  'garbage-read': 'a read of what nobody wrote',
  'incompatible-order': 'two orders of one list',
  'lost-append': 'an acknowledged append is lost',
  G0: 'writes of transactions are interleaved',
  G1c: 'transactions saw each other',
  'G-single': 'a transaction saw one part of another and missed another part, or overwrote what it had not seen',
  G2: 'transactions missed each other',
} satisfies Record<CycleBase | Exclude<Fault['type'], 'unusable-history'>, string>;

export function describeFault({ type, detail, transactions }: Fault): string {
  return [`${type} (${MEANING[type]}): ${detail}`, ...transactions.map((txn) => `    ${describeTxn(txn)}`)].join('\n');
}

/** The transactions of a cycle by name, then why each had to come before the next. */
export function describeCycle({ type, edges }: Cycle, history: readonly TxnRecord[]): string {
  const names = new Map(edges.map(({ from }, i) => [from, `T${i + 1}`]));
  const base = type.replace(/-(session|realtime)$/, '');
  const because = edges.map((edge) => {
    const [from, to] = [names.get(edge.from) ?? '', names.get(edge.to) ?? ''];
    return `    ${from} came before ${to}: ${reason(edge, from, to)}`;
  });
  return [
    `${type} (${MEANING[base]}${type === base ? '' : ', in the order of time'}):`,
    ...edges.map(({ from }) => `    ${names.get(from)} = ${describeTxn(history[from])}`),
    ...because,
    '    and so each came before itself.',
  ].join('\n');
}

function reason({ kind, key, element }: Edge, from: string, to: string): string {
  switch (kind) {
    case WW:
      return `${to} appended ${quote(element)} to ${quote(key)} after what ${from} appended`;
    case WR:
      return `${to} read ${quote(element)} in ${quote(key)}, which ${from} appended`;
    case RW:
      return `${from} read ${quote(key)} without ${quote(element)}, which ${to} appended`;
    case SESSION:
      return `their client began ${to} after ${from} had ended`;
    case TIME:
      return `${to} began after ${from} had ended`;
  }
}

function describeTxn(txn: TxnRecord | undefined): string {
  if (txn === undefined) return 'unknown';
  const outcome = txn.t1 === null ? 'unknown' : txn.ok ? 'committed' : 'aborted';
  return `[${txn.t0} – ${txn.t1 ?? '…'}] client ${txn.c}: ${txn.ops.map(describeOp).join(', ')}: ${outcome}`;
}

function describeOp(op: TxnOp): string {
  if (op.op === 'append') return `append(${op.k}, ${quote(op.v)})`;
  return `get(${op.k})${op.out === undefined ? '' : ` = ${shown(op.out)}`}`;
}
