/**
 * What a range records about leases whose home is another range: where in this range keys and locks may belong to them.
 *
 * LR1. A key or lock belongs to a lease of another range only where a reference covers it, and then the home has the
 *      place among the lease's spans (S3 of leases.ts): the home was notified first, or a split moved both in one
 *      entry.
 * LR2. References name keys, not ranges: a split cuts them at its place, and a merge puts those of both ranges side by
 *      side. So a span that the home has settled with one range is never covered again by the other range's reference.
 * LR3. Once the lease has ended in a span, the reference no longer covers that span. The reference stays, without the
 *      span, while keys and locks are left to be deleted, so that the rows of one incarnation are never mistaken for
 *      those of another.
 * LR4. Only a home that went on alone, without its majority, may grant an id of which another range still has an
 *      earlier incarnation (range/leases/lease-audit.ts). No range ever knows two incarnations, because its rows
 *      distinguish leases by the id alone: a command that would bring them together is refused (lease-ownership.ts
 *      BL2), until the audit has ended the earlier one. Only a merge with a source that went on alone is not refused
 *      (merge.ts MG2): nothing may rely on that merge to stop a node.
 */
import { type Engine, equalBytes, LazyMap, type Row, type Span } from '@remora/base';
import { SpanKind, schema, storedRow } from '@remora/protocol';
import { isReferenceKey, leaseIdOfReference, referenceKey, referencesSpan } from '../keys.ts';
import { hasKey, minusSpan, plusSpan, type SpanSet } from '../span-set.ts';
import { Attachments } from './attachments.ts';

export interface LeaseReference {
  readonly id: bigint;
  readonly incarnation: number;
  /** The routing keys that the reference covers. */
  readonly spans: SpanSet;
}

const { field, list, struct, uint } = schema;

const REFERENCE_ROW = storedRow(
  'a reference to a lease',
  struct('reference to a lease', {
    incarnation: field(uint, 'The incarnation of the lease.'),
    spans: field(list(SpanKind), 'Where it may have something here.'),
  }),
  { 1: 2 },
);

export class LeaseReferences {
  readonly #engine: Engine;
  readonly #rangeId: () => number;
  /** What belongs to those leases in this range. */
  readonly attached: Attachments;
  readonly #byId = new LazyMap<bigint, LeaseReference>();

  constructor(engine: Engine, rangeId: () => number) {
    this.#engine = engine;
    this.#rangeId = rangeId;
    this.attached = new Attachments(engine, (id) => this.#key(id));
  }

  get size(): number {
    return this.#byId.size;
  }

  get(id: bigint): LeaseReference | undefined {
    return this.#byId.get(id);
  }

  all(): IterableIterator<LeaseReference> {
    return this.#byId.values();
  }

  /** Whether a key may belong to the lease; `incarnation` 0: to any incarnation that is known here. */
  covers(id: bigint, incarnation: number, routingKey: Uint8Array): boolean {
    const reference = this.#byId.get(id);
    if (reference === undefined || (incarnation !== 0 && incarnation !== reference.incarnation)) return false;
    return hasKey(reference.spans, routingKey);
  }

  /** Plain keys of this very lease. */
  keysOf(id: bigint, incarnation: number): readonly Uint8Array[] {
    return this.#byId.get(id)?.incarnation === incarnation ? this.attached.keys(id) : [];
  }

  /** Returns false if something of another incarnation is still here. */
  add(id: bigint, incarnation: number, span: Span): boolean {
    const known = this.#byId.get(id);
    if (known !== undefined && known.incarnation !== incarnation) return false;
    this.#set({ id, incarnation, spans: plusSpan(known?.spans ?? [], span) });
    return true;
  }

  /** LR3. */
  uncover(id: bigint, incarnation: number, span: Span): void {
    const known = this.#byId.get(id);
    if (known?.incarnation === incarnation) this.#set({ ...known, spans: minusSpan(known.spans, span) });
  }

  /** Deletes a reference that covers nothing and has no attachments left. */
  tidy(id: bigint): void {
    const known = this.#byId.get(id);
    if (known === undefined || known.spans.length > 0 || this.attached.any(id)) return;
    this.#byId.delete(id);
    this.#engine.delete(this.#key(id));
  }

  /** Loads the references of the range, when its replica starts or has installed a snapshot. */
  load(): void {
    this.#byId.clear();
    for (const row of this.#engine.scanResident(referencesSpan(this.#rangeId()))) {
      if (isReferenceKey(row.key)) this.#take(row);
    }
  }

  /** After a merge, the rows that another range held under its id belong to this one (LR2). */
  absorb(rangeId: number): void {
    for (const { key, value } of this.#engine.scanResident(referencesSpan(rangeId))) {
      const own = Buffer.from(key);
      referenceKey(this.#rangeId(), leaseIdOfReference(key)).copy(own);
      if (!isReferenceKey(key)) this.#engine.put(own, value);
      else this.#unite(decodeReference(leaseIdOfReference(key), value));
      this.#engine.delete(key);
    }
  }

  #unite(other: LeaseReference): void {
    const known = this.#byId.get(other.id) ?? { ...other, spans: [] };
    // LR4. Both have the same incarnation, unless the source went on alone after it was sealed.
    const incarnation = Math.max(known.incarnation, other.incarnation);
    this.#set({ id: other.id, incarnation, spans: other.spans.reduce(plusSpan, known.spans) });
  }

  #take({ key, value }: Row): void {
    const reference = decodeReference(leaseIdOfReference(key), value);
    this.#byId.set(reference.id, reference);
  }

  #set(reference: LeaseReference): void {
    const row = encodeReference(reference);
    const key = this.#key(reference.id);
    this.#byId.set(reference.id, reference);
    const before = this.#engine.get(key);
    if (before === undefined || !equalBytes(before, row)) this.#engine.put(key, row);
  }

  #key(id: bigint): Buffer {
    return referenceKey(this.#rangeId(), id);
  }
}

export function encodeReference(reference: LeaseReference): Buffer {
  return REFERENCE_ROW.encode(reference);
}

/** Throws an `InvariantError` for anything else. */
function decodeReference(id: bigint, value: Uint8Array): LeaseReference {
  return { id, ...REFERENCE_ROW.decode(value) };
}
