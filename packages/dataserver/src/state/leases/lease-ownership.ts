/**
 * Attachments of leases in a range, wherever the homes are: which lease may own a key or a lock, and which does.
 *
 * BL1. If a lease's home is here, alive or ending, new attachments lie behind its own row; otherwise behind a
 *      reference. After a merge, a range may have both for one lease; deletions look at both.
 * BL2. All attachments here are of one incarnation of the lease (lease-references.ts LR4). If another one is known
 *      here, the lease is neither granted nor referred to, and two ranges that know different ones are not merged.
 * BL3. In its home, only the home decides whether a lease is alive: a reference that the source of a merge brought
 *      still covers its span until the end reaches it, some entries later.
 */
import type { Bytes, Span } from '@remora/base';
import { type LockId, type LockNames, lockPrefix, type SessionRef } from '@remora/lock';
import { kvRoutingKey } from '@remora/protocol';
import { intersection } from '../bounds.ts';
import { type Attached, type Attachments, LOCKS } from './attachments.ts';
import type { LeaseReferences } from './lease-references.ts';
import type { Leases } from './leases.ts';

/** Which leases may own plain keys, and which do: the interface for changes of keys. */
export interface KeyOwners {
  /** Whether the lease is known to be alive, from the point of view of this key. */
  known(lease: bigint, key: Bytes): boolean;
  attach(lease: bigint, key: Bytes): void;
  detach(lease: bigint, key: Bytes): void;
}

/** For evaluations that change nothing. */
export const NO_OWNERS: KeyOwners = { known: () => false, attach() {}, detach() {} };

export class LeaseOwnership implements KeyOwners {
  readonly #home: Leases;
  readonly #references: LeaseReferences;
  /**
   * For the execution of prepared writes, whose leases were alive at prepare. The end of a lease waits for such writes
   * where it is applied or notified. But a merge may bring them to a range that it has reached already; the end of the
   * lease deletes their results all the same (T10 of decision 19).
   */
  readonly ofPrepared: KeyOwners = {
    known: (lease) => this.incarnationOf(lease) !== 0,
    attach: (lease, key) => this.attach(lease, key),
    detach: (lease, key) => this.detach(lease, key),
  };

  constructor(home: Leases, references: LeaseReferences) {
    this.#home = home;
    this.#references = references;
  }

  known(lease: bigint, key: Bytes): boolean {
    if (this.#home.get(lease) !== undefined) return true;
    if (this.#references.size === 0 || this.#home.has(lease)) return false; // BL3
    return this.#references.covers(lease, 0, kvRoutingKey(key));
  }

  /** The incarnation of the lease that is known here; 0: none. */
  incarnationOf(lease: bigint): number {
    const { incarnation = 0 } = this.#home.get(lease) ?? this.#home.ending(lease) ?? this.#references.get(lease) ?? {};
    return incarnation;
  }

  /** BL2: returns a lease of which the other range knows another incarnation; undefined if there is none. */
  conflictWith(other: LeaseOwnership): bigint | undefined {
    return this.#inConflict(other) ?? other.#inConflict(this);
  }

  /** Leases have one home, so one of the two only refers to it. */
  #inConflict(other: LeaseOwnership): bigint | undefined {
    for (const { id, incarnation } of this.#references.all()) {
      const there = other.incarnationOf(id);
      if (there !== 0 && there !== incarnation) return id;
    }
    return undefined;
  }

  attach(lease: bigint, key: Bytes): void {
    this.#of(lease).attachKey(lease, key);
  }

  detach(lease: bigint, key: Bytes): void {
    for (const attached of this.#both(lease)) attached.detachKey(lease, key);
  }

  /** Whether this very session is known to be alive, from the point of view of this lock. */
  alive(session: SessionRef, lock: LockId): boolean {
    if (this.#home.alive(session)) return true;
    if (this.#references.size === 0 || this.#home.has(session.lease)) return false; // BL3
    return this.#references.covers(session.lease, session.incarnation, lockPrefix(lock));
  }

  /** `isFirst`: the lock belongs to no lease yet. */
  attachLock({ lease }: SessionRef, names: LockNames, isFirst: boolean): void {
    this.#of(lease).attachLock(lease, names, isFirst);
  }

  hasLock({ lease }: SessionRef, names: LockNames): boolean {
    return this.#both(lease).some((attached) => attached.hasLock(lease, names));
  }

  detachLock({ lease }: SessionRef, names: LockNames): void {
    if (this.#home.has(lease)) this.#home.attached.detachLock(lease, names);
    if (this.#references.size > 0 && this.#references.get(lease) !== undefined)
      this.#references.attached.detachLock(lease, names);
  }

  /** Locks that a lease holds or waits for, in a span of routing keys. */
  locksOf(lease: bigint, routed: Span, limit: number): readonly LockId[] {
    const span = intersection(routed, LOCKS);
    return span === undefined ? [] : this.#both(lease).flatMap((attached) => attached.within(lease, span, limit).locks);
  }

  /** For a lease whose home is here. */
  ofHome(lease: bigint, span: Span, limit = 0): Attached {
    return this.#home.attached.within(lease, span, limit);
  }

  /** For a lease of another range. */
  ofReference(lease: bigint, span: Span, limit = 0): Attached {
    return this.#references.attached.within(lease, span, limit);
  }

  /** BL1: where new attachments go. */
  #of(lease: bigint): Attachments {
    return (this.#home.has(lease) ? this.#home : this.#references).attached;
  }

  #both(lease: bigint): readonly Attachments[] {
    const here = this.#home.has(lease);
    const referred = this.#references.get(lease) !== undefined;
    return [...(here ? [this.#home.attached] : []), ...(referred ? [this.#references.attached] : [])];
  }
}
