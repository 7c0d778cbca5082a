/**
 * What the read lists reveal by themselves, before any order of transactions is considered: the writer of each element,
 * the order of each list's versions, and the faults that need no cycle.
 *
 * V1. Only the reads of committed transactions are evidence: an aborted one may have received anything.
 * V2. If a client read an element of a transaction of unknown outcome, the whole transaction is committed. If nobody
 *     read anything of it, it is ignored: that it never happened is a valid explanation.
 * V3. All versions of a list are prefixes of the longest one that was read, which gives their order. If reads
 *     contradict each other, the key reveals nothing more, and is already at fault.
 * V4. A transaction's first read of a list, without its own earlier appends, is what other transactions had made of the
 *     list (`external`). All its later reads follow from that and its own appends.
 */
import type { TxnRecord } from './history.ts';

export type ListAnomaly =
  | 'internal'
  | 'G1a'
  | 'G1b'
  | 'duplicate-elements'
  | 'garbage-read'
  | 'incompatible-order'
  | 'unusable-history';

export interface Fault {
  readonly type: ListAnomaly | 'lost-append';
  readonly detail: string;
  readonly transactions: readonly TxnRecord[];
}

/**
 * One append: its transaction (by the index in the history), and its number among that transaction's appends to the
 * key.
 */
interface Writer {
  readonly txn: number;
  readonly nth: number;
}

interface Read {
  readonly txn: number;
  /** The length of what other transactions had made of the list (V4). */
  readonly external: number;
}

export interface KeyHistory {
  readonly key: string;
  readonly writers: Map<string, Writer>;
  readonly reads: Read[];
  /** The longest version that was read, and its reader. */
  longest: readonly string[];
  longestBy: number;
  /** V3. */
  usable: boolean;
}

export interface Lists {
  readonly keys: readonly KeyHistory[];
  readonly faults: readonly Fault[];
  /** By index in the history: whether it takes part (V2). */
  readonly committed: readonly boolean[];
}

export function readLists(history: readonly TxnRecord[]): Lists {
  return new ListReader(history).run();
}

class ListReader {
  readonly #history: readonly TxnRecord[];
  readonly #keys = new Map<string, KeyHistory>();
  readonly #faults: Fault[] = [];
  readonly #committed: boolean[];

  constructor(history: readonly TxnRecord[]) {
    this.#history = history;
    this.#committed = history.map(({ ok, t1 }) => ok && t1 !== null);
  }

  run(): Lists {
    for (const [txn, record] of this.#history.entries()) this.#noteWrites(txn, record);
    for (const [txn, record] of this.#history.entries()) if (this.#committed[txn]) this.#noteReads(txn, record); // V1
    for (const key of this.#keys.values()) this.#judge(key);
    return { keys: [...this.#keys.values()], faults: this.#faults, committed: this.#committed };
  }

  #key(key: string): KeyHistory {
    let known = this.#keys.get(key);
    if (known === undefined) {
      known = { key, writers: new Map(), reads: [], longest: [], longestBy: -1, usable: true };
      this.#keys.set(key, known);
    }
    return known;
  }

  #noteWrites(txn: number, record: TxnRecord): void {
    const counts = new Map<string, number>();
    for (const op of record.ops) {
      if (op.op !== 'append') continue;
      const key = this.#key(op.k);
      const before = key.writers.get(op.v);
      if (before !== undefined) {
        const detail = `${quote(op.v)} is appended to ${quote(op.k)} twice: elements must be unique (T1)`;
        this.#fault('unusable-history', detail, [before.txn, txn]);
        key.usable = false;
        continue;
      }
      const nth = counts.get(op.k) ?? 0;
      counts.set(op.k, nth + 1);
      key.writers.set(op.v, { txn, nth });
    }
  }

  /** Faults within a transaction, and what it reveals about the lists (V4). */
  #noteReads(txn: number, record: TxnRecord): void {
    const known = new Map<string, readonly string[]>();
    const own = new Map<string, string[]>();
    for (const { k, ...op } of record.ops) {
      const list = known.get(k);
      if (op.op === 'append') {
        if (list === undefined) own.set(k, [...(own.get(k) ?? []), op.v]);
        else known.set(k, [...list, op.v]);
        continue;
      }
      const out = op.out ?? [];
      if (list !== undefined) {
        if (!equal(list, out)) {
          this.#fault('internal', `it reads ${quote(k)} as ${shown(out)}, where it must find ${shown(list)}`, [txn]);
        }
        continue;
      }
      known.set(k, out);
      this.#noteRead(txn, this.#key(k), { out, own: own.get(k) ?? [] });
    }
  }

  #noteRead(txn: number, key: KeyHistory, { out, own }: { out: readonly string[]; own: readonly string[] }): void {
    const external = out.length - own.length;
    if (external < 0 || !equal(out.slice(external), own)) {
      this.#fault('internal', `it reads ${quote(key.key)} as ${shown(out)} after it appended ${shown(own)}`, [txn]);
      return;
    }
    const early = out.findIndex((element, i) => i < external && key.writers.get(element)?.txn === txn);
    if (early >= 0) {
      const detail = `it reads its own ${quote(out[early])} in ${quote(key.key)} before what it appended ahead of it`;
      this.#fault('internal', detail, [txn]);
      return;
    }
    key.reads.push({ txn, external });
    const { longest, longestBy } = key;
    const [short, long] = out.length > longest.length ? [longest, out] : [out, longest];
    const at = short.findIndex((element, i) => element !== long[i]);
    if (at >= 0) {
      const detail = `place ${at} of ${quote(key.key)} was read as ${quote(short[at])} and as ${quote(long[at])}`;
      if (key.usable) this.#fault('incompatible-order', detail, [longestBy, txn]);
      key.usable = false; // V3
      this.#noteElements(key, out, txn);
    } else if (out.length > longest.length) {
      key.longest = out;
      key.longestBy = txn;
    }
  }

  #judge(key: KeyHistory): void {
    this.#noteElements(key, key.longest, key.longestBy);
    if (!key.usable) return;
    for (const [i, element] of key.longest.entries()) {
      const writer = key.writers.get(element);
      if (writer === undefined || writer.nth === 0) continue;
      const before = key.writers.get(key.longest[i - 1] ?? '');
      if (before?.txn === writer.txn && before.nth === writer.nth - 1) continue;
      const detail = `${quote(element)} stands in ${quote(key.key)} away from what its transaction appended before it`;
      this.#fault('internal', detail, [writer.txn, key.longestBy]);
      break;
    }
    this.#findIntermediate(key);
  }

  /** The elements of a read version: each was appended, once, by a transaction that took effect (V2). */
  #noteElements(key: KeyHistory, elements: readonly string[], reader: number): void {
    const seen = new Set<string>();
    for (const element of elements) {
      const what = `${quote(element)} in ${quote(key.key)}`;
      if (seen.has(element)) {
        this.#fault('duplicate-elements', `${what} was read twice in one list`, [reader]);
        key.usable = false;
        return;
      }
      seen.add(element);
      const writer = key.writers.get(element);
      if (writer === undefined) {
        this.#fault('garbage-read', `${what} was read, and nobody appended it`, [reader]);
      } else if (this.#history[writer.txn]?.t1 === null) {
        this.#committed[writer.txn] = true;
      } else if (!this.#committed[writer.txn]) {
        this.#fault('G1a', `${what} was read, and its transaction was aborted`, [writer.txn, reader]);
      }
    }
  }

  #findIntermediate({ key, longest, reads, writers }: KeyHistory): void {
    const last = new Map<number, number>();
    for (const { txn, nth } of writers.values()) last.set(txn, Math.max(last.get(txn) ?? 0, nth));
    for (const { txn, external } of reads) {
      const element = longest[external - 1];
      const writer = element === undefined ? undefined : writers.get(element);
      if (writer === undefined || writer.txn === txn || writer.nth === last.get(writer.txn)) continue;
      const detail = `${quote(key)} was read up to ${quote(element)}, in the middle of what its transaction appended`;
      this.#fault('G1b', detail, [writer.txn, txn]);
      return;
    }
  }

  #fault(type: ListAnomaly, detail: string, txns: readonly number[]): void {
    const transactions = [...new Set(txns)].flatMap((txn) => this.#history[txn] ?? []);
    this.#faults.push({ type, detail, transactions });
  }
}

export function quote(text: string | undefined): string {
  return JSON.stringify(text ?? null);
}

const SHOWN_MAX = 6;

/** A list for people: only its end, because that is where changes happen. */
export function shown(list: readonly string[]): string {
  const left = list.length - SHOWN_MAX;
  return left <= 1 ? JSON.stringify(list) : `[… ${left} …, ${list.slice(-SHOWN_MAX).map(quote).join(', ')}]`;
}

function equal(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((element, i) => element === b[i]);
}
