/**
 * Grants the leases of a snapshot again, and keeps them alive while keys are written.
 *
 * LK1. A lease keeps its id and gets the TTL that etcd granted, counted from its last renewal here. A client of etcd
 *      that goes on renewing it by its id does not notice the move.
 * LK2. A lease is granted when its first key is about to be written, and is renewed when a third of its TTL has
 *      passed, a last time at the end. So its owner has a whole TTL to connect.
 * LK3. A lease that ended nevertheless, because writing stalled for longer than its TTL, is counted: its keys ended
 *      with it.
 */
import { ServiceError } from '@remora/base';
import type { Leases } from 'remora';
import type { EtcdLease } from './etcd-rows.ts';

/** Renewals that are under way at the same time. */
const PARALLEL = 64;
const LOOK_EVERY_MS = 500;

interface Kept {
  readonly id: bigint;
  readonly ttlMs: number;
  renewAtMs: number;
}

export class LeaseKeeper {
  readonly #lease: Pick<Leases, 'grant' | 'keepAlive'>;
  readonly #leases: ReadonlyMap<bigint, EtcdLease>;
  readonly #nowMs: () => number;
  readonly #kept = new Map<bigint, Kept>();
  #lookAtMs = 0;
  #lost = 0;

  constructor(
    lease: Pick<Leases, 'grant' | 'keepAlive'>,
    leases: ReadonlyMap<bigint, EtcdLease>,
    nowMs: () => number = () => performance.now(),
  ) {
    this.#lease = lease;
    this.#leases = leases;
    this.#nowMs = nowMs;
  }

  get granted(): number {
    return this.#kept.size;
  }

  /** LK3. */
  get lost(): number {
    return this.#lost;
  }

  /** Whether the snapshot has this lease. */
  has(id: bigint): boolean {
    return this.#leases.has(id);
  }

  /** LK2. Grants those of `ids` that were not granted yet, and renews all that are due. */
  async prepare(ids: readonly bigint[]): Promise<void> {
    for (const id of new Set(ids)) if (!this.#kept.has(id)) await this.#grant(id);
    if (this.#nowMs() < this.#lookAtMs) return;
    this.#lookAtMs = this.#nowMs() + LOOK_EVERY_MS;
    await this.#renew([...this.#kept.values()].filter(({ renewAtMs }) => renewAtMs <= this.#nowMs()));
  }

  /** LK2. Renews all leases for the last time. */
  async finish(): Promise<void> {
    await this.#renew([...this.#kept.values()]);
  }

  /** Forgets leases that have ended, so that the next `prepare` grants them again. */
  forget(ids: readonly bigint[]): void {
    for (const id of ids) this.#kept.delete(id);
  }

  async #grant(id: bigint): Promise<void> {
    const known = this.#leases.get(id);
    if (known === undefined) throw new Error(`the lease ${id} is not in the snapshot`);
    const ttlMs = known.ttlS * 1_000;
    const kept: Kept = { id, ttlMs, renewAtMs: this.#nowMs() + ttlMs / 3 };
    try {
      await this.#lease.grant(ttlMs, { id });
    } catch (error) {
      // An earlier attempt has granted it, and it may end soon.
      if (!(error instanceof ServiceError) || error.code !== 'LEASE_EXISTS') throw error;
      kept.renewAtMs = 0;
      this.#lookAtMs = 0;
    }
    this.#kept.set(id, kept);
  }

  async #renew(due: readonly Kept[]): Promise<void> {
    for (let at = 0; at < due.length; at += PARALLEL) {
      await Promise.all(due.slice(at, at + PARALLEL).map((kept) => this.#renewOne(kept)));
    }
  }

  async #renewOne(kept: Kept): Promise<void> {
    try {
      await this.#lease.keepAlive(kept.id);
      kept.renewAtMs = this.#nowMs() + kept.ttlMs / 3;
    } catch (error) {
      if (!(error instanceof ServiceError) || error.code !== 'LEASE_NOT_FOUND') throw error;
      this.#kept.delete(kept.id);
      this.#lost++;
    }
  }
}
