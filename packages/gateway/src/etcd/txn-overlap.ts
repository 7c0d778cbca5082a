import { asBuffer, type Bytes, compareBytes, ServiceError } from '@remora/base';
import type { KvOp } from '@remora/protocol';

/**
 * A transaction may change a key only once: no two puts of a key, and no put of a key that a delete covers, where both
 * could run. The two branches of a nested transaction exclude each other. Deletes may overlap (etcd `checkIntervals`).
 */
export function checkNoOverlap(ops: readonly KvOp[]): void {
  if (ops.length > 1 || ops[0]?.type === 'txn') changesOf(ops);
}

interface Changes {
  readonly puts: ReadonlySet<string>;
  readonly deletes: readonly DeletedSpan[];
}

/** Keys as latin1 text, which orders as bytes do. An `end` of undefined is unbounded. */
interface DeletedSpan {
  readonly start: string;
  readonly end: string | undefined;
}

function changesOf(ops: readonly KvOp[]): Changes {
  const puts = new Set<string>();
  const ownDeletes = new SpanSet();
  for (const op of ops) if (op.type === 'delete') ownDeletes.add(deletedSpan(op.key, op.end));
  const deletes = new SpanSet(ownDeletes.spans);

  for (const op of ops) {
    if (op.type !== 'txn') continue;
    const then = changesOf(op.txn.success);
    const otherwise = changesOf(op.txn.failure);
    for (const key of then.puts) addPut(key, puts, deletes);
    for (const key of otherwise.puts) if (!then.puts.has(key)) addPut(key, puts, deletes);
    for (const span of then.deletes) deletes.add(span);
    for (const span of otherwise.deletes) deletes.add(span);
  }
  for (const op of ops) if (op.type === 'put') addPut(textOf(op.key), puts, deletes);
  return { puts, deletes: deletes.spans };
}

function addPut(key: string, puts: Set<string>, deletes: SpanSet): void {
  if (puts.has(key) || deletes.has(key)) {
    throw new ServiceError('DUPLICATE_KEY', 'a transaction may change a key only once');
  }
  puts.add(key);
}

function deletedSpan(key: Bytes, end: Bytes | undefined): DeletedSpan | undefined {
  if (end === undefined) return { start: textOf(key), end: `${textOf(key)}\0` };
  if (end.length === 0) return { start: textOf(key), end: undefined };
  return compareBytes(key, end) < 0 ? { start: textOf(key), end: textOf(end) } : undefined;
}

function textOf(bytes: Bytes): string {
  return asBuffer(bytes).toString('latin1');
}

/** Spans of keys that answers membership in logarithmic time; it is put in order when first asked after a change. */
class SpanSet {
  #spans: DeletedSpan[];
  #ordered = false;

  constructor(spans: readonly DeletedSpan[] = []) {
    this.#spans = [...spans];
  }

  get spans(): readonly DeletedSpan[] {
    return this.#spans;
  }

  add(span: DeletedSpan | undefined): void {
    if (span === undefined) return;
    this.#spans.push(span);
    this.#ordered = false;
  }

  has(key: string): boolean {
    if (this.#spans.length === 0) return false;
    if (!this.#ordered) this.#order();
    let low = 0;
    let high = this.#spans.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#spans[middle]?.start ?? '') <= key) low = middle + 1;
      else high = middle;
    }
    const candidate = this.#spans[low - 1];
    return candidate !== undefined && (candidate.end === undefined || key < candidate.end);
  }

  /** Sorts by start and unites what overlaps, so that the last span that starts at or before a key decides. */
  #order(): void {
    const united: DeletedSpan[] = [];
    for (const span of this.#spans.sort((a, b) => (a.start < b.start ? -1 : a.start > b.start ? 1 : 0))) {
      const last = united.at(-1);
      if (last === undefined || (last.end !== undefined && last.end < span.start)) united.push(span);
      else united[united.length - 1] = { start: last.start, end: laterEnd(last.end, span.end) };
    }
    this.#spans = united;
    this.#ordered = true;
  }
}

function laterEnd(a: string | undefined, b: string | undefined): string | undefined {
  if (a === undefined || b === undefined) return undefined;
  return a > b ? a : b;
}
