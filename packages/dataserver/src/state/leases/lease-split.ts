/**
 * The effect of a split on leases and their attachments.
 *
 * LS1. Leases stay where their records are. Keys and locks that a split separates from their lease belong to it in the
 *      child by a reference, and the child's place is one of the lease's spans from this very entry on (LR1).
 * LS2. References are cut at the place, together with the attachments behind them (LR2).
 */
import { compareBytes, type Engine, type Row, type Span } from '@remora/base';
import { attachableSpan, intersection } from '../bounds.ts';
import {
  attachedRoutingKey,
  isLeaseRecordKey,
  isReferenceKey,
  leaseIdOfKey,
  leaseIdOfReference,
  leaseKey,
  leaseSpaceSpan,
  referenceKey,
  referencesSpan,
} from '../keys.ts';
import type { RangeFields } from '../range-fields.ts';
import { plusSpan, type SpanSet, withinSpan } from '../span-set.ts';
import { encodeReference, type LeaseReferences } from './lease-references.ts';
import type { Leases } from './leases.ts';

export interface CutRange {
  readonly engine: Engine;
  readonly rangeId: number;
  /** As it was before the split. */
  readonly span: Span;
  readonly leases: Leases;
  readonly references: LeaseReferences;
  readonly transactions: Pick<RangeFields['transactions'], 'leasesWithin'>;
}

/** Takes the leaving part out of the range; returns the rows with which the child begins. */
export function cutLeases(range: CutRange, at: Uint8Array, childId: number): readonly Row[] {
  const behind = attachableSpan({ start: at, end: range.span.end });
  if (behind === undefined) return [];
  const child = new ChildReferences(childId);
  const staged = range.transactions.leasesWithin(behind);
  cutHome(range, { at, behind, staged }, child);
  cutReferences(range, { behind, staged }, child);
  return child.rows();
}

/** LS1. */
function cutHome(
  { engine, span, leases }: CutRange,
  { at, behind, staged }: { readonly at: Uint8Array; readonly behind: Span; readonly staged: ReadonlySet<bigint> },
  child: ChildReferences,
): void {
  const staying = intersection({ start: span.start, end: at }, leaseSpaceSpan());
  if (staying === undefined) return;
  const parted = new Set([...staged].filter((id) => leases.has(id) && compareBytes(leaseKey(id), at) < 0));
  for (const { key, value } of engine.scanResident(staying)) {
    if (isLeaseRecordKey(key) || compareBytes(attachedRoutingKey(key), at) < 0) continue;
    const id = leaseIdOfKey(key);
    parted.add(id);
    child.attach(id, key.subarray(leaseKey(id).length), value);
    engine.delete(key);
  }
  for (const id of parted) {
    leases.addSpan(id, behind);
    const alive = leases.get(id);
    const incarnation = (alive ?? leases.ending(id))?.incarnation ?? 0;
    child.refer(id, incarnation, alive === undefined ? [] : [behind]);
  }
}

/** LS2. */
function cutReferences(
  { engine, rangeId, references }: CutRange,
  { behind, staged }: { readonly behind: Span; readonly staged: ReadonlySet<bigint> },
  child: ChildReferences,
): void {
  if (references.size === 0) return;
  for (const { key, value } of engine.scanResident(referencesSpan(rangeId))) {
    if (isReferenceKey(key) || compareBytes(attachedRoutingKey(key), behind.start) < 0) continue;
    const id = leaseIdOfReference(key);
    child.attach(id, key.subarray(referenceKey(rangeId, id).length), value);
    engine.delete(key);
  }
  for (const { id, incarnation, spans } of [...references.all()]) {
    const leaving = withinSpan(spans, behind);
    if (leaving.length === 0 && !child.has(id) && !staged.has(id)) continue;
    child.refer(id, incarnation, leaving);
    references.uncover(id, incarnation, behind);
    if (!staged.has(id)) references.tidy(id);
  }
}

/** Collects the rows of the child's references. */
class ChildReferences {
  readonly #rangeId: number;
  readonly #attached: Row[] = [];
  readonly #ids = new Set<bigint>();
  readonly #byId = new Map<bigint, { readonly incarnation: number; readonly spans: SpanSet }>();

  constructor(rangeId: number) {
    this.#rangeId = rangeId;
  }

  has(id: bigint): boolean {
    return this.#ids.has(id);
  }

  /** `rest`: an attachment row's key behind the lease's key, beginning with its kind. */
  attach(id: bigint, rest: Uint8Array, value: Uint8Array): void {
    this.#ids.add(id);
    this.#attached.push({ key: Buffer.concat([referenceKey(this.#rangeId, id), rest]), value });
  }

  refer(id: bigint, incarnation: number, spans: SpanSet): void {
    this.#ids.add(id);
    const known = this.#byId.get(id)?.spans ?? [];
    this.#byId.set(id, { incarnation, spans: spans.reduce(plusSpan, known) });
  }

  rows(): readonly Row[] {
    const references = [...this.#byId].map(([id, { incarnation, spans }]) => ({
      key: referenceKey(this.#rangeId, id),
      value: encodeReference({ id, incarnation, spans }),
    }));
    return [...references, ...this.#attached];
  }
}
