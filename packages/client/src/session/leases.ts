import { ServiceError } from '@remora/base';
import type { LeaseInfo } from '@remora/protocol';
import { type Duration, ttlMsOf } from '../options/duration.ts';
import { flag, leaseId, requireLease } from '../options/option-kinds.ts';
import { checkOptions, optionSet } from '../options/options.ts';
import type { Requester } from '../transport/requester.ts';
import { Listing } from '../values/listing.ts';
import { printable } from '../values/printable.ts';

export interface GrantedLease {
  readonly id: bigint;
  /** The TTL that the cluster granted, in ms. */
  readonly ttlMs: number;
}

export interface LeaseGrantOptions {
  /** The id of the lease: 64 bits, not 0n. Default: a random one. */
  readonly id?: bigint | undefined;
}

export const LEASE_GRANT_OPTIONS = optionSet<LeaseGrantOptions>('grant of a lease', { id: leaseId });

export interface TimeToLiveOptions {
  /** Also return the keys that belong to the lease. Default false. */
  readonly keys?: boolean | undefined;
}

export const TIME_TO_LIVE_OPTIONS = optionSet<TimeToLiveOptions>('timeToLive', { keys: flag });

/**
 * Leases for keys. They are not renewed automatically: call `keepAlive` every third of the TTL, or put keys with the
 * lease of a session (`RemoraClient.session`).
 *
 * Every method throws `ServiceError`: UNAVAILABLE, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED or UNKNOWN_OUTCOME when the
 * cluster did not answer; INVALID_ARGUMENT for wrong arguments.
 */
export class Leases {
  readonly #requester: Requester;
  readonly #timeoutMs: number;

  constructor(requester: Requester, timeoutMs: number) {
    this.#requester = requester;
    this.#timeoutMs = timeoutMs;
  }

  /**
   * Grants a lease that ends `ttl` after its last renewal.
   *
   * @throws ServiceError LEASE_EXISTS when the given `id` is in use.
   */
  async grant(ttl: Duration, options: LeaseGrantOptions = {}): Promise<GrantedLease> {
    checkOptions(LEASE_GRANT_OPTIONS, options);
    const { random } = this.#requester.ports;
    const id = options.id ?? BigInt.asUintN(63, random.bytes(8).readBigUInt64BE()) | 1n;
    const command = { type: 'leaseGrant', id, ttlMs: ttlMsOf(ttl, 'ttl'), attributes: {} } as const;
    const { result } = await this.#requester.command(command, { timeoutMs: this.#timeoutMs });
    if (result.type !== 'leaseGrant') throw unexpected(result.type);
    return printable({ id: result.id, ttlMs: result.ttlMs });
  }

  /**
   * Renews a lease once. Returns the TTL that begins now, in ms.
   *
   * @throws ServiceError LEASE_NOT_FOUND when it has ended.
   */
  async keepAlive(id: bigint): Promise<number> {
    requireLease(id, 'lease');
    const query = { type: 'leaseKeepAlive', id, incarnation: 0 } as const;
    const { result } = await this.#requester.query(query, { timeoutMs: this.#timeoutMs });
    if (result.type !== 'leaseKeepAlive') throw unexpected(result.type);
    if (result.ttlMs <= 0) throw new ServiceError('LEASE_NOT_FOUND', 'the lease has ended');
    return result.ttlMs;
  }

  /** Ends a lease and deletes its keys. @throws ServiceError LEASE_NOT_FOUND when it has ended already. */
  async revoke(id: bigint): Promise<void> {
    requireLease(id, 'lease');
    await this.#requester.command({ type: 'leaseRevoke', id, incarnation: 0 }, { timeoutMs: this.#timeoutMs });
  }

  /** Returns the TTL of a lease and how much of it is left; undefined when there is no such lease. */
  async timeToLive(id: bigint, options: TimeToLiveOptions = {}): Promise<LeaseInfo | undefined> {
    requireLease(id, 'lease');
    checkOptions(TIME_TO_LIVE_OPTIONS, options);
    const query = { type: 'leaseTimeToLive', id, keys: options.keys ?? false } as const;
    const { result } = await this.#requester.query(query, { timeoutMs: this.#timeoutMs });
    if (result.type !== 'leaseTimeToLive') throw unexpected(result.type);
    return result.lease.remainingMs < 0 ? undefined : printable(result.lease);
  }

  /** The ids of all leases, those of sessions included. They are on one page. */
  list(): Listing<bigint> {
    return new Listing(async () => {
      const { result } = await this.#requester.query({ type: 'leases' }, { timeoutMs: this.#timeoutMs });
      if (result.type !== 'leases') throw unexpected(result.type);
      return { items: result.ids, cursor: undefined };
    });
  }
}

function unexpected(type: string): ServiceError {
  return new ServiceError('INTERNAL', `a lease request was answered by a result of another kind: ${type}`);
}
