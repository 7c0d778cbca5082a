import { type Bytes, compareBytes, type Engine, ServiceError, type Span, spanContains } from '@remora/base';
import { type LockId, lockSpan, type SessionRef } from '@remora/lock';
import { asCount, asMs, asText, decodeStored, encodeStored, invalid, type StoredFormat } from '@remora/protocol';
import { intersection } from './bounds.ts';
import {
  attachedKeysSpan,
  attachedLock,
  attachedLocksSpan,
  attachedTarget,
  isLeaseRecordKey,
  leaseIdOfKey,
  leaseKey,
  leaseSpaceSpan,
} from './keys.ts';

/**
 * Leases as replicated state: who they are and what belongs to them. When they end is not decided here: the
 * leader's lease keeper watches the time and proposes (design §9).
 *
 * S1. A lease is named by id and incarnation; the incarnation is the revision of its grant, so it never repeats.
 * S2. What belongs to a lease is a row per key or lock under the lease's own prefix; apply keeps it in step.
 */
export interface Lease {
  readonly id: bigint;
  readonly incarnation: number;
  readonly ttlMs: number;
  readonly attributes: Readonly<Record<string, string>>;
}

/** etcd's bound: longer TTLs overflow what clients compute with them. */
export const LEASE_TTL_MAX_MS = 9_000_000_000_000;
const LEASE: StoredFormat = { what: 'a lease', version: 1, fields: 3 };

export class Leases {
  readonly #engine: Engine;
  readonly #byId = new Map<bigint, Lease>();

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /** Reads the leases of a span of routing keys, when the replica starts or has installed a snapshot. */
  load(routed: Span): void {
    this.#byId.clear();
    this.take(routed);
  }

  /** Reads the leases of a further span, which the range has now too; gives them. */
  take(routed: Span): readonly Lease[] {
    const span = intersection(routed, leaseSpaceSpan());
    const rows = span === undefined ? [] : this.#engine.scanResident(span);
    const leases: Lease[] = [];
    for (const { key, value } of rows) {
      if (isLeaseRecordKey(key)) leases.push(decodeLease(leaseIdOfKey(key), value));
    }
    for (const lease of leases) this.#byId.set(lease.id, lease);
    return leases;
  }

  /** Forgets those outside of a span of routing keys, which have gone to another range. */
  cut(routed: Span): readonly bigint[] {
    if (routed.end.length === 0 || compareBytes(routed.end, leaseSpaceSpan().end) >= 0) return [];
    const gone = [...this.#byId.keys()].filter((id) => !spanContains(routed, leaseKey(id)));
    for (const id of gone) this.#byId.delete(id);
    return gone;
  }

  get size(): number {
    return this.#byId.size;
  }

  get(id: bigint): Lease | undefined {
    return this.#byId.get(id);
  }

  all(): IterableIterator<Lease> {
    return this.#byId.values();
  }

  alive(session: SessionRef): boolean {
    return this.#byId.get(session.lease)?.incarnation === session.incarnation;
  }

  grant(lease: Lease): void {
    if (this.#byId.has(lease.id)) throw new ServiceError('LEASE_EXISTS', `lease ${lease.id} already exists`);
    if (lease.ttlMs > LEASE_TTL_MAX_MS)
      throw new ServiceError('LEASE_TTL_TOO_LARGE', 'the TTL of the lease is too large');
    this.#byId.set(lease.id, lease);
    this.#engine.put(leaseKey(lease.id), encodeLease(lease));
  }

  /** Removes the lease's own record; its attachments go with what they name. */
  remove(id: bigint): void {
    this.#byId.delete(id);
    this.#engine.delete(leaseKey(id));
  }

  attachedKeys(id: bigint): readonly Bytes[] {
    return this.#engine.scanResident(attachedKeysSpan(id)).map((row) => attachedTarget(row.key));
  }

  attachedLocks(id: bigint): readonly LockId[] {
    return this.#engine.scanResident(attachedLocksSpan(id)).map((row) => decodeLockId(row.value));
  }

  attachLock(session: SessionRef, lock: LockId): void {
    this.#engine.put(attachedLock(session.lease, lockSpan(lock).start), encodeLockId(lock));
  }

  detachLock(session: SessionRef, lock: LockId): void {
    this.#engine.delete(attachedLock(session.lease, lockSpan(lock).start));
  }
}

export function encodeLease(lease: Lease): Buffer {
  return encodeStored(LEASE, [lease.incarnation, lease.ttlMs, lease.attributes]);
}

/** Throws an `InvariantError` for anything else. */
export function decodeLease(id: bigint, value: Bytes): Lease {
  return decodeStored(LEASE, value, ([incarnation, ttlMs, attributes]) => ({
    id,
    incarnation: asCount(incarnation, 'lease incarnation'),
    ttlMs: asMs(ttlMs, 'lease ttl'),
    attributes: asAttributes(attributes),
  }));
}

function asAttributes(raw: unknown): Readonly<Record<string, string>> {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw) || raw instanceof Uint8Array) {
    throw invalid('lease attributes');
  }
  return Object.fromEntries(Object.entries(raw).map(([name, value]) => [name, asText(value, 'lease attribute')]));
}

function encodeLockId(lock: LockId): Buffer {
  const namespace = Buffer.from(lock.namespace, 'utf8');
  return Buffer.concat([Buffer.from([namespace.length]), namespace, lock.name]);
}

function decodeLockId(value: Bytes): LockId {
  const split = 1 + (value[0] ?? 0);
  return {
    namespace: Buffer.from(value.subarray(1, split)).toString('utf8'),
    name: Buffer.from(value.subarray(split)),
  };
}
