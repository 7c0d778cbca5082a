import { ServiceError } from '@remora/base';
import type { LeaseInfo } from '@remora/protocol';
import { type Duration, ttlMsOf } from '../options/duration.ts';
import { flag, leaseId, requireLease } from '../options/option-kinds.ts';
import { checkOptions, optionSet } from '../options/options.ts';
import type { Requester } from '../transport/requester.ts';

export interface GrantedLease {
  readonly id: bigint;
  readonly ttlMs: number;
}

export interface LeaseGrantOptions {
  readonly id?: bigint | undefined;
}

export const LEASE_GRANT_OPTIONS = optionSet<LeaseGrantOptions>('grant of a lease', { id: leaseId });

export interface TimeToLiveOptions {
  readonly keys?: boolean | undefined;
}

export const TIME_TO_LIVE_OPTIONS = optionSet<TimeToLiveOptions>('timeToLive', { keys: flag });

/** Leases for keys. Nothing here renews by itself: `keepAlive` once per third of the TTL, or use a session. */
export class Leases {
  readonly #requester: Requester;
  readonly #timeoutMs: number;

  constructor(requester: Requester, timeoutMs: number) {
    this.#requester = requester;
    this.#timeoutMs = timeoutMs;
  }

  /** @throws ServiceError LEASE_EXISTS when `id` was given and is taken. */
  async grant(ttl: Duration, options: LeaseGrantOptions = {}): Promise<GrantedLease> {
    checkOptions(LEASE_GRANT_OPTIONS, options);
    const { random } = this.#requester.ports;
    const id = options.id ?? BigInt.asUintN(63, random.bytes(8).readBigUInt64BE()) | 1n;
    const command = { type: 'leaseGrant', id, ttlMs: ttlMsOf(ttl, 'ttl'), attributes: {} } as const;
    const { result } = await this.#requester.command(command, { timeoutMs: this.#timeoutMs });
    if (result.type !== 'leaseGrant') throw unexpected(result.type);
    return { id: result.id, ttlMs: result.ttlMs };
  }

  /** Renews once; returns the TTL that begins now. @throws ServiceError LEASE_NOT_FOUND when it is gone. */
  async keepAlive(id: bigint): Promise<number> {
    requireLease(id, 'lease');
    const query = { type: 'leaseKeepAlive', id, incarnation: 0 } as const;
    const { result } = await this.#requester.query(query, { timeoutMs: this.#timeoutMs });
    if (result.type !== 'leaseKeepAlive') throw unexpected(result.type);
    if (result.ttlMs <= 0) throw new ServiceError('LEASE_NOT_FOUND', 'the lease has ended');
    return result.ttlMs;
  }

  /** Ends the lease and deletes its keys. */
  async revoke(id: bigint): Promise<void> {
    requireLease(id, 'lease');
    await this.#requester.command({ type: 'leaseRevoke', id, incarnation: 0 }, { timeoutMs: this.#timeoutMs });
  }

  /** Undefined when there is no such lease. */
  async timeToLive(id: bigint, options: TimeToLiveOptions = {}): Promise<LeaseInfo | undefined> {
    requireLease(id, 'lease');
    checkOptions(TIME_TO_LIVE_OPTIONS, options);
    const query = { type: 'leaseTimeToLive', id, keys: options.keys ?? false } as const;
    const { result } = await this.#requester.query(query, { timeoutMs: this.#timeoutMs });
    if (result.type !== 'leaseTimeToLive') throw unexpected(result.type);
    return result.lease.remainingMs < 0 ? undefined : result.lease;
  }

  async list(): Promise<readonly bigint[]> {
    const { result } = await this.#requester.query({ type: 'leases' }, { timeoutMs: this.#timeoutMs });
    if (result.type !== 'leases') throw unexpected(result.type);
    return result.ids;
  }
}

function unexpected(type: string): ServiceError {
  return new ServiceError('INTERNAL', `a lease request was answered by a result of another kind: ${type}`);
}
