/**
 * Checks whether leases live as long as they must, and end when they must (design §9).
 *
 * Promises:
 * L1. Not early: a lease that is not revoked lives for its TTL after the sending of each acknowledged keep-alive,
 *     including its grant, less the drift that clocks may have.
 * L2. Over is over: no keep-alive that is sent after the end is acknowledged.
 * L3. The client knows first: everything that it does because it believes its lease to be alive, it does before the
 *     end.
 * L4. It ends: in a healthy cluster, a TTL (and drift) and `endsWithinMs` after the last keep-alive was sent.
 * L5. No orphan: a key that belongs to a lease is deleted within `endsWithinMs` of the lease's end.
 *
 * Times are of one clock for all events, in ms. A lease is identified by its id and incarnation, as one text. Events
 * need not be in time order.
 */
import { assert } from '@remora/base';
import { type Check, type Finding, NOTHING, violation } from '../check.ts';

export type LeaseEvent =
  /** A client knows of its grant, which it requested at `sentMs`. */
  | { readonly type: 'granted'; readonly lease: string; readonly ttlMs: number; readonly sentMs: number }
  /** A keep-alive was sent, whatever its outcome. */
  | { readonly type: 'tried'; readonly lease: string; readonly sentMs: number }
  | { readonly type: 'renewed'; readonly lease: string; readonly sentMs: number }
  /** A client relies on the lease. */
  | { readonly type: 'used'; readonly lease: string; readonly atMs: number }
  /** A revocation was requested: the lease may end from now on. */
  | { readonly type: 'revoked'; readonly lease: string; readonly atMs: number }
  /** The lease is known to be over: from the state machine that applied its end, or from an answer "not found". */
  | { readonly type: 'ended'; readonly lease: string; readonly atMs: number }
  /** A key was put, with a lease or without one. */
  | { readonly type: 'put'; readonly key: string; readonly lease: string | undefined }
  | { readonly type: 'deleted'; readonly key: string }
  /** The cluster is healthy, and has been for as long as L4 and L5 require. */
  | { readonly type: 'settled'; readonly atMs: number };

export interface LeaseCheckOptions {
  /** How much faster than ours a clock may run. */
  readonly driftPerMille: number;
  /** How long the end of a lease, and the deletion of its keys, may take after the lease's last moment. */
  readonly endsWithinMs: number;
  /** The number of leases and keys to remember. More are a mistake of the test. */
  readonly leasesMax?: number;
}

interface Lease {
  readonly name: string;
  readonly ttlMs: number;
  /** When the last acknowledged keep-alive was sent. Then when the last one of all was sent. */
  renewedMs: number;
  triedMs: number;
  usedMs: number;
  revokedMs: number;
  endedMs: number;
}

const LEASES_MAX = 1_000_000;

export class LeaseCheck implements Check<LeaseEvent> {
  readonly name = 'lease';
  readonly #options: LeaseCheckOptions;
  readonly #leases = new Map<string, Lease>();
  /** What is known of leases before their clients know of the grant. */
  readonly #endedEarly = new Map<string, number>();
  /** The lease of each key that has one. */
  readonly #keys = new Map<string, string>();
  /** What `settled` has already reported (C2). */
  readonly #told = new Set<string>();

  constructor(options: LeaseCheckOptions) {
    this.#options = options;
  }

  observe(event: LeaseEvent): readonly Finding[] {
    switch (event.type) {
      case 'granted':
        return this.#grant(event);
      case 'tried':
        return this.#with(event.lease, (lease) => {
          lease.triedMs = Math.max(lease.triedMs, event.sentMs);
          return NOTHING;
        });
      case 'renewed':
        return this.#with(event.lease, (lease) => this.#renew(lease, event.sentMs));
      case 'used':
        return this.#with(event.lease, (lease) => {
          if (event.atMs <= lease.usedMs) return NOTHING;
          lease.usedMs = event.atMs;
          return usedAfter(lease);
        });
      case 'revoked':
        return this.#with(event.lease, (lease) => {
          lease.revokedMs = Math.min(lease.revokedMs, event.atMs);
          return NOTHING;
        });
      case 'ended':
        return this.#end(event.lease, event.atMs);
      case 'put':
        if (event.lease === undefined) this.#keys.delete(event.key);
        else this.#keys.set(event.key, event.lease);
        assert(this.#keys.size <= this.#max(), 'a run has as many keys as can be remembered');
        return NOTHING;
      case 'deleted':
        this.#keys.delete(event.key);
        return NOTHING;
      case 'settled':
        return this.#settle(event.atMs);
    }
  }

  finish(): readonly Finding[] {
    return NOTHING;
  }

  #grant({ lease: name, ttlMs, sentMs }: Extract<LeaseEvent, { type: 'granted' }>): readonly Finding[] {
    const never = Number.POSITIVE_INFINITY;
    const endedMs = this.#endedEarly.get(name) ?? never;
    assert(!this.#leases.has(name), `${name} is granted once: a new lease of that id is another incarnation`);
    assert(this.#leases.size < this.#max(), 'a run has as many leases as can be remembered');
    const lease = { name, ttlMs, renewedMs: sentMs, triedMs: sentMs, usedMs: -never, revokedMs: never, endedMs };
    this.#leases.set(name, lease);
    return this.#lifetime(lease);
  }

  #renew(lease: Lease, sentMs: number): readonly Finding[] {
    lease.triedMs = Math.max(lease.triedMs, sentMs);
    if (sentMs <= lease.renewedMs) return NOTHING;
    lease.renewedMs = sentMs;
    return this.#lifetime(lease);
  }

  #end(name: string, atMs: number): readonly Finding[] {
    const lease = this.#leases.get(name);
    if (lease === undefined) {
      this.#endedEarly.set(name, Math.min(atMs, this.#endedEarly.get(name) ?? atMs));
      assert(this.#endedEarly.size <= this.#max(), 'a run has as many leases as can be remembered');
      return NOTHING;
    }
    if (atMs >= lease.endedMs) return NOTHING; // Known.
    lease.endedMs = atMs;
    return [...this.#lifetime(lease), ...usedAfter(lease)];
  }

  /** L1, L2. The end may become known later than it happens, never earlier. */
  #lifetime({ name, ttlMs, renewedMs, revokedMs, endedMs }: Lease): readonly Finding[] {
    if (renewedMs > endedMs) {
      const detail = `${name} ended at ${endedMs}, and a keep-alive sent at ${renewedMs} was acknowledged`;
      return [violation('lease: over is over', detail)];
    }
    const mustLiveToMs = renewedMs + ttlMs * (1 - this.#options.driftPerMille / 1_000);
    if (endedMs >= mustLiveToMs || revokedMs <= endedMs) return NOTHING;
    const detail = `${name} (TTL ${ttlMs} ms) ended at ${endedMs}, though a keep-alive sent at ${renewedMs} was acknowledged`;
    return [violation('lease: not early', detail)];
  }

  #settle(atMs: number): readonly Finding[] {
    const { driftPerMille, endsWithinMs } = this.#options;
    const found: Finding[] = [];
    const tell = (what: string, finding: Finding): void => {
      if (!this.#told.has(what)) found.push(finding);
      this.#told.add(what);
    };
    for (const { name, ttlMs, triedMs, revokedMs, endedMs } of this.#leases.values()) {
      const overMs = Math.min(triedMs + ttlMs * (1 + driftPerMille / 1_000), revokedMs) + endsWithinMs;
      if (endedMs <= atMs || overMs >= atMs) continue;
      tell(
        `end of ${name}`,
        violation('lease: ends', `${name} is alive at ${atMs}, and had to end by ${Math.round(overMs)}`),
      );
    }
    for (const [key, name] of this.#keys) {
      const endedMs = this.#leases.get(name)?.endedMs ?? this.#endedEarly.get(name) ?? Number.POSITIVE_INFINITY;
      if (endedMs + endsWithinMs >= atMs) continue;
      const detail = `${JSON.stringify(key)} is there at ${atMs}, and its lease ${name} ended at ${endedMs}`;
      tell(`orphan ${key} of ${name}`, violation('lease: no orphan', detail));
    }
    return found;
  }

  /** Events of a lease whose grant no client knows of are ignored. */
  #with(name: string, act: (lease: Lease) => readonly Finding[]): readonly Finding[] {
    const lease = this.#leases.get(name);
    return lease === undefined ? NOTHING : act(lease);
  }

  #max(): number {
    return this.#options.leasesMax ?? LEASES_MAX;
  }
}

/** L3. */
function usedAfter({ name, usedMs, endedMs }: Lease): readonly Finding[] {
  if (usedMs <= endedMs) return NOTHING;
  const detail = `${name} ended at ${endedMs}, and its client still relied on it at ${usedMs}`;
  return [violation('lease: the client knows first', detail)];
}
