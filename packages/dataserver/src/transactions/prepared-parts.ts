import { type Bytes, type Span, spanContains } from '@remora/base';
import { isLockCompare, kvRoutingKey, type TxnPart } from '@remora/protocol';
import { Intents, writes } from './intents.ts';
import { cutPart, decodePart, encodePart, joinPieces, type PartBounds, type PreparedPart } from './prepared-part.ts';
import { type RowWrites, StagedRows } from './staged-rows.ts';
import { type Touching, touchedByPart } from './touched-keys.ts';

/** The parts that a range has prepared and not resolved, and the requests that conflict with them. */
export class PreparedParts {
  readonly #rows = new StagedRows<PreparedPart>(encodePart);
  readonly #intents = new Intents();
  #bytes = 0;
  #earliestCommit = Number.POSITIVE_INFINITY;

  get size(): number {
    return this.#rows.size;
  }

  get intents(): number {
    return this.#intents.size;
  }

  /** The approximate memory of the parts. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Prepared parts commit at or above this revision (T4 and T6 of decision 19). */
  get earliestCommit(): number {
    return this.#earliestCommit;
  }

  all(): IterableIterator<PreparedPart> {
    return this.#rows.values();
  }

  /** The range's parts of a transaction, in the order of the parts: after a merge there may be more than one. */
  of(txnId: string): readonly PreparedPart[] {
    return inOrder([...this.#rows.values()].filter((part) => part.txnId === txnId));
  }

  has(txnId: string, part: number): boolean {
    return this.#rows.get(nameOf({ txnId, part })) !== undefined;
  }

  add(part: PreparedPart): void {
    this.#rows.set(nameOf(part), part);
    this.#hold(part);
  }

  remove(part: PreparedPart): void {
    this.#rows.delete(nameOf(part));
    this.#intents.remove(part);
    this.#bytes -= bytesOf(part);
    this.#earliestCommit = earliest(this.#rows.values());
  }

  #hold(part: PreparedPart): void {
    this.#intents.add(part);
    this.#bytes += bytesOf(part);
    if (writes(part)) this.#earliestCommit = Math.min(this.#earliestCommit, part.floor + 1);
  }

  /** Calls back with each part that conflicts with the reads or writes of others, perhaps more than once (T2). */
  holding(found: (part: PreparedPart) => void): Touching {
    return {
      reads: (range) => this.#intents.againstReading(range, found),
      writes: (range) => this.#intents.againstWriting(range, found),
      requires: () => {}, // no intent on a lock does more than keep the lock as it is
      changes: (lock) => this.#intents.againstChanging(lock, found),
    };
  }

  /** Returns the parts of other transactions that prevent a part from being prepared. */
  against(txnId: string, part: TxnPart): readonly PreparedPart[] {
    const found = new Set<PreparedPart>();
    if (this.size > 0)
      touchedByPart(
        part,
        this.holding((other) => found.add(other)),
      );
    return inOrder([...found].filter((other) => other.txnId !== txnId));
  }

  /** The first part that may write with a lease. */
  withLease(lease: bigint): PreparedPart | undefined {
    return this.#first((part) => part.ops.some(({ op }) => op.type === 'put' && op.lease === lease));
  }

  /** Returns the leases of staged writes to keys in a span of routing keys. */
  leasesWithin(span: Span): ReadonlySet<bigint> {
    const leases = new Set<bigint>();
    for (const { ops } of this.#rows.values()) {
      for (const { op } of ops) {
        if (op.type === 'put' && op.lease !== 0n && spanContains(span, kvRoutingKey(op.key))) leases.add(op.lease);
      }
    }
    return leases;
  }

  /**
   * Returns the first part that a compaction up to a revision would harm: by its commit, or by a read at an older
   * revision (T10).
   */
  againstCompaction(revision: number): PreparedPart | undefined {
    return this.#first(
      (part) =>
        (writes(part) && revision > part.floor) ||
        part.ops.some(({ op }) => op.type === 'range' && op.revision > 0 && op.revision < revision),
    );
  }

  #first(which: (part: PreparedPart) => boolean): PreparedPart | undefined {
    for (const part of this.#rows.values()) if (which(part)) return part;
    return undefined;
  }

  /** Keeps the pieces within `kept`, and returns the pieces within `leaving`, which another range has from now on. */
  cut(kept: PartBounds, leaving: PartBounds): readonly PreparedPart[] {
    const left: PreparedPart[] = [];
    for (const part of [...this.#rows.values()]) {
      const gone = cutPart(part, leaving);
      if (gone === undefined) continue;
      left.push(gone);
      const stays = cutPart(part, kept);
      this.remove(part);
      if (stays !== undefined) this.add(stays);
    }
    return left;
  }

  /** Takes over the parts of another range, in a split or a merge. */
  takeOver(parts: Iterable<PreparedPart>): void {
    for (const part of parts) {
      const here = this.#rows.get(nameOf(part));
      if (here !== undefined) this.remove(here);
      this.add(here === undefined ? part : joinPieces(here, part));
    }
  }

  flush(rows: RowWrites): void {
    this.#rows.flush(rows);
  }

  load(rows: readonly { readonly name: string; readonly bytes: Bytes }[]): void {
    this.#rows.load(rows, decodePart);
    for (const part of this.#rows.values()) this.#hold(part);
  }
}

/** Sorts independently of arrival: after a restart, a node reads the parts in the order of their rows. */
function inOrder(parts: readonly PreparedPart[]): readonly PreparedPart[] {
  if (parts.length < 2) return parts;
  return [...parts].sort((a, b) => (a.txnId === b.txnId ? a.part - b.part : a.txnId < b.txnId ? -1 : 1));
}

function nameOf({ txnId, part }: Pick<PreparedPart, 'txnId' | 'part'>): string {
  return `${txnId}/${part}`;
}

function earliest(parts: Iterable<PreparedPart>): number {
  let lowest = Number.POSITIVE_INFINITY;
  for (const part of parts) if (writes(part)) lowest = Math.min(lowest, part.floor + 1);
  return lowest;
}

const PART_BYTES = 300;
const OP_BYTES = 150;

function bytesOf({ compares, ops }: TxnPart): number {
  let bytes = PART_BYTES;
  for (const compare of compares) {
    const names = isLockCompare(compare) ? compare.lock.name : compare.key;
    bytes += OP_BYTES + names.length + ((isLockCompare(compare) ? undefined : compare.end)?.length ?? 0);
  }
  for (const { op } of ops) {
    bytes += OP_BYTES + op.key.length + (op.type === 'put' ? op.value.length : (op.end?.length ?? 0));
  }
  return bytes;
}
