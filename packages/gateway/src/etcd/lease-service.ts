import { type Random, ServiceError } from '@remora/base';
import type { LeaseInfo } from '@remora/protocol';
import type * as pb from '@remora/protocol/etcd';
import type { Backend } from '../backend.ts';
import type { CallDone, CallInfo, GiveUp } from '../calls.ts';
import type { Headers } from './headers.ts';
import { answering } from './replies.ts';

/** etcd's longest TTL, in seconds. */
const TTL_MAX_S = 9_000_000_000n;

/** The unary calls of `etcdserverpb.Lease` over a backend. */
export class EtcdLease {
  readonly #backend: Backend;
  readonly #headers: Headers;
  readonly #random: Random;

  constructor(backend: Backend, headers: Headers, random: Random) {
    this.#backend = backend;
    this.#headers = headers;
    this.#random = random;
  }

  grant(request: pb.LeaseGrantRequest, call: CallInfo, done: CallDone<pb.LeaseGrantResponse>): GiveUp {
    const ttlMs = toTtlMs(request.TTL);
    const id = request.ID === 0n ? randomLeaseId(this.#random) : request.ID;
    return this.#backend.command(
      { type: 'leaseGrant', id, ttlMs, attributes: {} },
      call,
      answering(this.#headers, done, 'leaseGrant', (result, header) => ({
        header,
        ID: result.id,
        TTL: toTtlSeconds(result.ttlMs),
        error: '',
      })),
    );
  }

  revoke(request: pb.LeaseRevokeRequest, call: CallInfo, done: CallDone<pb.LeaseRevokeResponse>): GiveUp {
    return this.#backend.command(
      { type: 'leaseRevoke', id: request.ID, incarnation: 0 },
      call,
      answering(this.#headers, done, 'leaseRevoke', (_, header) => ({ header })),
    );
  }

  timeToLive(request: pb.LeaseTimeToLiveRequest, call: CallInfo, done: CallDone<pb.LeaseTimeToLiveResponse>): GiveUp {
    return this.#backend.query(
      { type: 'leaseTimeToLive', id: request.ID, keys: request.keys },
      { timeoutMs: call.timeoutMs, principal: call.principal, current: true },
      (error, reply) => {
        if (error?.code === 'LEASE_NOT_FOUND')
          return done(undefined, unknownLease(request.ID, this.#headers.latest(call.seen)));
        answering(this.#headers, done, 'leaseTimeToLive', (result, header) =>
          result.lease.remainingMs < 0 ? unknownLease(request.ID, header) : fromLease(result.lease, header),
        )(error, reply);
      },
    );
  }

  leases(_request: pb.LeaseLeasesRequest, call: CallInfo, done: CallDone<pb.LeaseLeasesResponse>): GiveUp {
    return this.#backend.query(
      { type: 'leases' },
      { timeoutMs: call.timeoutMs, principal: call.principal, current: true },
      answering(this.#headers, done, 'leases', (result, header) => ({
        header,
        leases: result.ids.map((ID) => ({ ID })),
      })),
    );
  }
}

/** Returns a positive 63-bit id, never 0, as etcd does. */
export function randomLeaseId(random: Random): bigint {
  const id = random.bytes(8).readBigUInt64BE() >> 1n;
  return id === 0n ? 1n : id;
}

/** The TTL in seconds, rounded down as clients rely on it, but at least 1: 0 would mean that the lease is gone. */
export function toTtlSeconds(ttlMs: number): number {
  return Math.max(1, Math.floor(ttlMs / 1000));
}

/** The range raises a TTL that is too short, 0 and less included, to its minimum, as etcd does. */
function toTtlMs(seconds: bigint): number {
  if (seconds > TTL_MAX_S) throw new ServiceError('LEASE_TTL_TOO_LARGE', `a TTL is at most ${TTL_MAX_S} s`);
  return seconds <= 1n ? 1000 : Number(seconds) * 1000;
}

function fromLease(lease: LeaseInfo, header: pb.ResponseHeader): pb.LeaseTimeToLiveResponse {
  return {
    header,
    ID: lease.id,
    TTL: Math.floor(lease.remainingMs / 1000),
    grantedTTL: toTtlSeconds(lease.grantedTtlMs),
    keys: lease.keys.map((key) => Buffer.from(key)),
  };
}

/** Like etcd, answers for an unknown lease instead of an error. */
function unknownLease(id: bigint, header: pb.ResponseHeader): pb.LeaseTimeToLiveResponse {
  return { header, ID: id, TTL: -1, grantedTTL: 0, keys: [] };
}
