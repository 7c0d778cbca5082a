/**
 * Clients whose leases have keys in all ranges.
 *
 * LE1. A key that was put with a lease stays for as long as its client renews the lease in time. A repeated put with
 *      the same lease, together with keys in other ranges, does not change that.
 * LE2. Once a revocation was answered, no key of the lease is left: neither now nor at the revision of the answer.
 * LE3. In the end, after all clients stopped renewing, no key of any lease is left.
 */
import type { Random } from '@remora/base';
import type { RangeBackend } from '@remora/gateway';
import type { Command, CommandResult, Query, QueryResult } from '@remora/protocol';
import { put, range } from '../../../packages/dataserver/test/support/state-bed.ts';
import type { RangeCluster } from './bed.ts';

interface OwnedLease {
  readonly id: bigint;
  readonly incarnation: number;
  /** By the client's reckoning: send time of the last acknowledged keep-alive, and the TTL. */
  validUntilMs: number;
  readonly keys: string[];
  over: boolean;
}

type Told<Result> = (result: Result | undefined, code: string | undefined, revision: number) => void;

const TTL_MS = 1_500;
/** Some pauses are so long that little time is left by the last checkpoint when the next heartbeat arrives. */
const HEARTBEAT_PAUSES_MS = [300, 300, 300, 1_100];
/**
 * On both sides of the keys that other clients write and delete: in the first range with plain keys, and in the last
 * one.
 */
const PLACES = ['j', 'm'];
/** The first id, above those of other clients. */
const FIRST_ID = 1_000n;

export class LeaseLoad {
  readonly #bed: RangeCluster;
  readonly #random: Random;
  readonly faults: string[] = [];
  #leases = 0n;
  #keys = 0;
  /** Acknowledged puts with a lease, and acknowledged revocations. */
  attached = 0;
  revoked = 0;
  /** Transactions that repeat puts of keys with their current leases. */
  kept = 0;

  constructor(bed: RangeCluster) {
    this.#bed = bed;
    this.#random = bed.laterRandom;
  }

  get #nowMs(): number {
    return this.#bed.clock.monotonicMs();
  }

  client(untilMs: number): void {
    this.#later(this.#random.int(100), () => this.#open(untilMs));
  }

  #later(ms: number, fn: () => void): void {
    this.#bed.clock.setTimer(ms, fn);
  }

  get #backend(): RangeBackend | undefined {
    const up = [...this.#bed.nodes.values()].filter(({ running }) => running !== undefined);
    return up[this.#random.int(Math.max(1, up.length))]?.running?.backend;
  }

  /** One request. `told` is called in the end, even if the request's gateway dies. */
  #send(command: Command, told: Told<CommandResult>): void {
    const once = this.#once(told);
    this.#backend?.command(command, { timeoutMs: 2_500 }, (error, reply) => {
      once(reply?.result, error?.code, reply?.revision ?? 0);
    });
  }

  #ask(query: Query, told: Told<QueryResult>): void {
    const once = this.#once(told);
    this.#backend?.query(query, { timeoutMs: 2_500 }, (error, reply) => {
      once(reply?.result, error?.code, reply?.revision ?? 0);
    });
  }

  #once<Result>(told: Told<Result>): Told<Result> {
    let over = false;
    const once: Told<Result> = (result, code, revision) => {
      if (!over) told(result, code, revision);
      over = true;
    };
    this.#later(3_000, () => once(undefined, undefined, 0));
    return once;
  }

  #open(untilMs: number): void {
    if (this.#nowMs >= untilMs) return;
    const sentMs = this.#nowMs;
    const id = FIRST_ID + this.#leases++;
    this.#send({ type: 'leaseGrant', id, ttlMs: TTL_MS, attributes: {} }, (result) => {
      if (result?.type !== 'leaseGrant') return this.#open(untilMs);
      const { incarnation } = result;
      const lease: OwnedLease = { id, incarnation, validUntilMs: sentMs + TTL_MS, keys: [], over: false };
      this.#keepAlive(lease);
      this.#work(lease, untilMs);
    });
  }

  #keepAlive(lease: OwnedLease): void {
    if (lease.over) return;
    const sentMs = this.#nowMs;
    const { id, incarnation } = lease;
    this.#ask({ type: 'leaseKeepAlive', id, incarnation }, (result) => {
      if (result?.type !== 'leaseKeepAlive' || lease.over) return;
      lease.validUntilMs = Math.max(lease.validUntilMs, sentMs + TTL_MS);
    });
    const pauseMs = HEARTBEAT_PAUSES_MS[this.#random.int(HEARTBEAT_PAUSES_MS.length)] ?? 0;
    this.#later(pauseMs, () => this.#keepAlive(lease));
  }

  #work(lease: OwnedLease, untilMs: number): void {
    if (this.#nowMs >= Math.min(untilMs, lease.validUntilMs)) return this.#leave(lease, untilMs);
    const what = this.#random.int(10);
    if (what === 0) return this.#leave(lease, untilMs);
    if (what === 1) return this.#revoke(lease, untilMs);
    const next = (): void => this.#later(this.#random.int(60), () => this.#work(lease, untilMs));
    if (what < 4 && lease.keys.length > 0) this.#check(lease, next);
    else if (what < 6 && lease.keys.length > 1) this.#putAgain(lease, next);
    else this.#put(lease, next);
  }

  /** Abandons the lease: it expires. */
  #leave(lease: OwnedLease, untilMs: number): void {
    lease.over = true;
    this.#later(this.#random.int(100), () => this.#open(untilMs));
  }

  #put(lease: OwnedLease, next: () => void): void {
    const key = `${PLACES[this.#random.int(PLACES.length)]}${++this.#keys}`;
    const op = put(key, String(lease.id), { lease: lease.id });
    if (op.type !== 'put') return next();
    this.#send({ type: 'kv', op }, (result, code) => {
      if (result !== undefined) {
        this.attached++;
        lease.keys.push(key);
      } else if (code === 'LEASE_NOT_FOUND') this.#gone(lease, `a put of ${key}`);
      next();
    });
  }

  /**
   * Puts two or more keys, mostly of different ranges, with their current leases: a transaction that depends on a lease
   * without naming it.
   */
  #putAgain(lease: OwnedLease, next: () => void): void {
    const keys = PLACES.flatMap((place) => lease.keys.findLast((key) => key.startsWith(place)) ?? []);
    const success = keys.map((key) => put(key, '', { ignoreLease: true, ignoreValue: true }));
    const txn = { compare: [], success, failure: [] };
    this.#send({ type: 'txn', txn }, (result, code) => {
      if (result !== undefined) this.kept++;
      // The key does not exist any more, or is about to be deleted.
      if (code === 'LEASE_NOT_FOUND' || code === 'INVALID_ARGUMENT') this.#gone(lease, `a put of ${keys.join()} again`);
      next();
    });
  }

  /** LE1. */
  #check(lease: OwnedLease, next: () => void): void {
    const key = lease.keys[this.#random.int(lease.keys.length)] ?? '';
    this.#read(key, (found) => {
      if (found === 0) this.#gone(lease, `a read of ${key}`);
      next();
    });
  }

  #gone({ id, validUntilMs }: OwnedLease, what: string): void {
    if (this.#nowMs >= validUntilMs) return;
    this.faults.push(`LE1: ${what} found lease ${id} gone ${validUntilMs - this.#nowMs} ms early`);
  }

  #read(key: string, told: (found: number | undefined) => void, revision = 0): void {
    const op = range(key, undefined, { revision });
    if (op.type !== 'range') return;
    this.#ask({ type: 'range', op, serializable: false }, (result) => {
      told(result?.type === 'range' ? result.count : undefined);
    });
  }

  #revoke(lease: OwnedLease, untilMs: number): void {
    const { id, incarnation, keys } = lease;
    lease.over = true;
    this.#send({ type: 'leaseRevoke', id, incarnation }, (result, _code, revision) => {
      if (result !== undefined) {
        this.revoked++;
        for (const key of keys) {
          this.#isGone(lease, key, 0);
          this.#isGone(lease, key, revision);
        }
      }
      this.#later(this.#random.int(100), () => this.#open(untilMs));
    });
  }

  /** LE2. Revision 0: the current state. */
  #isGone({ id }: OwnedLease, key: string, revision: number): void {
    const told = (found: number | undefined): void => {
      if (found === undefined || found === 0) return;
      const when = revision === 0 ? '' : ` at revision ${revision}, that of the answer`;
      this.faults.push(`LE2: ${key} is there after lease ${id} was revoked${when}`);
    };
    this.#read(key, told, revision);
  }

  /** LE3. `keys`: the keys that exist. */
  check(keys: readonly string[]): readonly string[] {
    const left = keys.filter((key) => PLACES.some((place) => key.startsWith(place)));
    return [...this.faults, ...left.map((key) => `LE3: ${key} is left of a lease`)];
  }
}
