import {
  type Bytes,
  compareBytes,
  type Engine,
  LazyMap,
  prefixEnd,
  ServiceError,
  type Span,
  spanContains,
  spanCovers,
} from '@remora/base';
import { type Condition, type SessionRef, TTL_NEVER_MS } from '@remora/lock';
import { ConditionKind, OWNER, SpanKind, schema, storedRow } from '@remora/protocol';
import { intersection } from '../bounds.ts';
import { isLeaseRecordKey, leaseIdOfKey, leaseKey, leaseSpaceSpan } from '../keys.ts';
import { minusSpan, NO_SPANS, plusSpan, type SpanSet } from '../span-set.ts';
import { Attachments } from './attachments.ts';

/**
 * The leases whose home a range is, as replicated state: the leases, and where their attachments may be. Their expiry
 * is not decided here: the leader's lease keeper watches the time and proposes (design §9).
 *
 * S1. A lease is named by id and incarnation; the incarnation is the revision of its grant, so it never repeats.
 * S2. Each attachment here has a row under the lease's own prefix, for each key or lock; apply keeps the rows in step.
 * S3. Every other place that may have attachments of the lease is in its `spans`: a range is added before it has the
 *     first attachment (docs/decisions/0025). This range is added too, if an ended lease has more attachments here than
 *     one entry can delete.
 * S4. A lease that has ended while it had spans stays in the state *ending*, until each span is settled. Nothing treats
 *     it as alive, and its id is not granted meanwhile, so that no two incarnations ever exist at a time.
 * S5. For a lease whose client is silent, its remaining time may be recorded here. A new leader does not give it more
 *     time than that, so the record is removed before a heartbeat is acknowledged (docs/decisions/0059).
 * S6. The owner is set by the grant and never changes: a gateway that knows the owner of an id with its incarnation
 *     need not ask again. Nothing in this range decides by it (gateway/src/authorisation/decisions.ts).
 */
export interface Lease extends LeaseTerms {
  readonly id: bigint;
  readonly incarnation: number;
  readonly attributes: Readonly<Record<string, string>>;
  /** S6. A session has one: the user who began it, or `NO_OWNER`. Absent: a lease of plain keys. */
  readonly owner?: string;
  /** S3. Routing keys. */
  readonly spans: SpanSet;
  /** S5. The time that was left when its client had been silent for a while; absent: not known. */
  readonly remainingMs?: number;
}

/** The properties of a lease that may be changed. */
export interface LeaseTerms {
  readonly ttlMs: number;
  /** For display only; the TTL is what counts. */
  readonly condition?: Condition;
  /** The number of the last change; 0: none. */
  readonly change: number;
}

/** etcd's bound: longer TTLs overflow what clients compute with them. */
const LEASE_TTL_MAX_MS = TTL_NEVER_MS;
/** The number of rows that one page of a list examines. */
const PAGE_LOOKED_MAX = 10_000;
export class Leases {
  readonly #engine: Engine;
  /** What belongs to them in this range. */
  readonly attached: Attachments;
  readonly #alive = new LazyMap<bigint, Lease>();
  readonly #ending = new LazyMap<bigint, Lease>();

  constructor(engine: Engine) {
    this.#engine = engine;
    this.attached = new Attachments(engine, leaseKey);
  }

  /** Loads the leases of a span of routing keys, when the replica starts or has installed a snapshot. */
  load(routed: Span): void {
    this.#alive.clear();
    this.#ending.clear();
    this.take(routed);
  }

  /** Loads the leases of a further span that the range has now; returns those that are alive. */
  take(routed: Span): readonly Lease[] {
    const span = intersection(routed, leaseSpaceSpan());
    const rows = span === undefined ? [] : this.#engine.scanResident(span);
    const leases: Lease[] = [];
    for (const { key, value } of rows) {
      if (!isLeaseRecordKey(key)) continue;
      const { ending, ...lease } = decodeLease(leaseIdOfKey(key), value);
      (ending ? this.#ending : this.#alive).set(lease.id, lease);
      if (!ending) leases.push(lease);
    }
    return leases;
  }

  /** Forgets the leases outside a span of routing keys: another range has them. */
  cut(routed: Span): readonly bigint[] {
    if (spanCovers(routed, leaseSpaceSpan())) return [];
    const gone = [...this.#alive.keys(), ...this.#ending.keys()].filter((id) => !spanContains(routed, leaseKey(id)));
    for (const id of gone) {
      this.#alive.delete(id);
      this.#ending.delete(id);
    }
    return gone;
  }

  /** The number of leases that are alive. */
  get size(): number {
    return this.#alive.size;
  }

  /** Returns only a lease that is alive. */
  get(id: bigint): Lease | undefined {
    return this.#alive.get(id);
  }

  all(): IterableIterator<Lease> {
    return this.#alive.values();
  }

  /**
   * Returns leases that are alive, in the order of their rows, after a given one (0: from the first): at most `limit`
   * matching ones, out of a bounded number that is examined. `next`: where to continue; 0: there are no more in this
   * span.
   */
  page(
    routed: Span,
    { after, limit, matches }: { after: bigint; limit: number; matches: (lease: Lease) => boolean },
  ): { readonly found: readonly Lease[]; readonly next: bigint } {
    const found: Lease[] = [];
    const span = intersection(routed, leaseSpaceSpan());
    if (span === undefined) return { found, next: 0n };
    const behind = after === 0n ? span.start : prefixEnd(leaseKey(after));
    let start = compareBytes(behind, span.start) > 0 ? behind : span.start;
    for (let looked = 0; ; looked++) {
      if (compareBytes(start, span.end) >= 0) return { found, next: 0n };
      // The attachments behind a lease's row are skipped.
      const [row] = this.#engine.scanResident({ start, end: span.end, limit: 1 });
      if (row === undefined) return { found, next: 0n };
      const id = leaseIdOfKey(row.key);
      start = prefixEnd(leaseKey(id));
      const lease = this.#alive.get(id);
      if (lease !== undefined && matches(lease)) found.push(lease);
      if (found.length === limit || looked >= PAGE_LOOKED_MAX) return { found, next: id };
    }
  }

  alive(session: SessionRef): boolean {
    return this.#alive.get(session.lease)?.incarnation === session.incarnation;
  }

  ending(id: bigint): Lease | undefined {
    return this.#ending.get(id);
  }

  allEnding(): IterableIterator<Lease> {
    return this.#ending.values();
  }

  /** Whether this range is the lease's home, whether the lease is alive or ending. */
  has(id: bigint): boolean {
    return this.#alive.has(id) || this.#ending.has(id);
  }

  grant(lease: Lease): void {
    if (this.#alive.has(lease.id)) throw new ServiceError('LEASE_EXISTS', `lease ${lease.id} already exists`);
    checkTtl(lease.ttlMs);
    this.#alive.set(lease.id, lease);
    this.#store(lease, false);
  }

  /** The lease must be alive. */
  change(id: bigint, terms: LeaseTerms): void {
    const lease = this.#alive.get(id);
    if (lease === undefined) return;
    checkTtl(terms.ttlMs);
    const { condition: _, ...rest } = lease;
    const changed = { ...rest, ...terms };
    this.#alive.set(id, changed);
    this.#store(changed, false);
  }

  /** S5. The lease must be alive. */
  checkpoint(id: bigint, remainingMs: number | undefined): void {
    const lease = this.#alive.get(id);
    if (lease === undefined) return;
    const { remainingMs: _, ...rest } = lease;
    const changed = remainingMs === undefined ? rest : { ...rest, remainingMs };
    this.#alive.set(id, changed);
    this.#store(changed, false);
  }

  /** S3. The lease must be alive or ending. */
  addSpan(id: bigint, span: Span): void {
    const [leases, lease] = this.#find(id);
    const spans = lease && plusSpan(lease.spans, span);
    if (lease === undefined || spans === undefined || spans === lease.spans) return;
    leases.set(id, { ...lease, spans });
    this.#store({ ...lease, spans }, leases === this.#ending);
  }

  /** The lease is no longer alive (S4). */
  beginEnd(id: bigint): void {
    const lease = this.#alive.get(id);
    if (lease === undefined) return;
    this.#alive.delete(id);
    this.#ending.set(id, lease);
  }

  /** The lease must be ending: nothing of it is left in a span. With the last span, the lease is deleted. */
  settle(id: bigint, span: Span | undefined): void {
    const lease = this.#ending.get(id);
    if (lease === undefined) return;
    const spans = span === undefined ? lease.spans : minusSpan(lease.spans, span);
    if (spans.length === 0) {
      this.#ending.delete(id);
      this.#engine.delete(leaseKey(id));
    } else {
      this.#ending.set(id, { ...lease, spans });
      this.#store({ ...lease, spans }, true);
    }
  }

  #find(id: bigint): readonly [LazyMap<bigint, Lease>, Lease | undefined] {
    const leases = this.#alive.has(id) ? this.#alive : this.#ending;
    return [leases, leases.get(id)];
  }

  #store(lease: Lease, ending: boolean): void {
    this.#engine.put(leaseKey(lease.id), encodeLease({ ...lease, ending }));
  }
}

/** A lease as its row has it. */
export interface LeaseRecord extends Lease {
  readonly ending: boolean;
}

const { added, bool, field, list, maybe, ms, struct, text, textObject, uint } = schema;
const SINCE = '0.1.0';

/**
 * Version 1 is a lease that is alive and in no other range; version 2 has spans; version 3 has a condition or was
 * changed; version 4 records the remaining time (S5); version 5 has an owner (S6).
 */
const LEASE_ROW = storedRow(
  'a lease',
  struct('lease', {
    incarnation: field(uint, 'The revision of its grant.'),
    ttlMs: field(ms, 'Its TTL in milliseconds.'),
    attributes: field(textObject, 'What its client says of itself.'),
    spans: added(field(list(SpanKind), 'Other places that may have something of it.'), {
      since: SINCE,
      absent: NO_SPANS,
    }),
    ending: added(field(bool, 'It has ended, and its spans have not been cleared.'), { since: SINCE, absent: false }),
    change: added(field(uint, 'The number of the last change of its TTL.'), { since: SINCE, absent: 0 }),
    condition: added(maybe(ConditionKind, 'Shown with it.'), { since: SINCE, absent: undefined }),
    remainingMs: added(maybe(ms, 'The time that was left when its client fell silent.'), {
      since: SINCE,
      absent: undefined,
    }),
    owner: added(maybe(text, OWNER), { since: SINCE, absent: undefined }),
  }),
  { 1: 3, 2: 5, 3: 7, 4: 8, 5: 9 },
);

export function encodeLease(lease: LeaseRecord): Buffer {
  return LEASE_ROW.encode(lease);
}

/** Throws an `InvariantError` for anything else. */
export function decodeLease(id: bigint, value: Bytes): LeaseRecord {
  return { id, ...LEASE_ROW.decode(value) };
}

/**
 * Whether a lease that never expires ends when it has no attachments left: its client changed the TTL to "never" once
 * the lease had its attachments (range/leases/empty-leases.ts EM1).
 */
export function endsEmpty({ change, ttlMs }: Pick<Lease, 'change' | 'ttlMs'>): boolean {
  return change > 0 && ttlMs >= TTL_NEVER_MS;
}

function checkTtl(ttlMs: number): void {
  if (ttlMs > LEASE_TTL_MAX_MS) throw new ServiceError('LEASE_TTL_TOO_LARGE', 'the TTL of the lease is too large');
}
