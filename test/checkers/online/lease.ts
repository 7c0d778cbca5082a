/**
 * Whether leases live as long as they must, and end when they must (design §9).
 *
 * Promises:
 * L1. Not early: a lease that nobody revokes lives for its TTL after the sending of each keep-alive that is
 *     acknowledged, its grant included; less the drift that clocks may have.
 * L2. Over is over: no keep-alive that is sent after the end is acknowledged.
 * L3. The client knows first: what it does in the belief that its lease is alive, it does before the end.
 * L4. It ends: in a healthy cluster, a TTL (and drift) and `endsWithinMs` after the last keep-alive was sent.
 * L5. No orphan: a key that belongs to a lease goes with it, in `endsWithinMs`.
 *
 * Times are of one clock for all events, in ms. A lease is named by id and incarnation, as one text. Events may come
 * in another order than their times.
 */
import { assert } from '@remora/base';
import { type Check, type Finding, NOTHING, violation } from '../check.ts';

export type LeaseEvent =
  /** A client knows of its grant, for which it asked at `sentMs`. */
  | { readonly type: 'granted'; readonly lease: string; readonly ttlMs: number; readonly sentMs: number }
  /** A keep-alive was sent, whatever becomes of it. */
  | { readonly type: 'tried'; readonly lease: string; readonly sentMs: number }
  | { readonly type: 'renewed'; readonly lease: string; readonly sentMs: number }
  /** A client relies on the lease. */
  | { readonly type: 'used'; readonly lease: string; readonly atMs: number }
  /** Somebody asked to revoke it: it may end from now on. */
  | { readonly type: 'revoked'; readonly lease: string; readonly atMs: number }
  /** It is known to be over: by the state machine that applied it, or by an answer "not found". */
  | { readonly type: 'ended'; readonly lease: string; readonly atMs: number }
  /** A key was put; it belongs to a lease, or to none. */
  | { readonly type: 'put'; readonly key: string; readonly lease: string | undefined }
  | { readonly type: 'deleted'; readonly key: string }
  /** The cluster is healthy, and was for as long as L4 and L5 need. */
  | { readonly type: 'settled'; readonly atMs: number };

export interface LeaseCheckOptions {
  /** How much faster than ours a clock may run. */
  readonly driftPerMille: number;
  /** How long after a lease's last moment its end, and that of its keys, may take. */
  readonly endsWithinMs: number;
  /** Leases and keys to remember; more are a mistake of the test. */
  readonly leasesMax?: number;
}

interface Lease {
  readonly name: string;
  readonly ttlMs: number;
  /** When the last keep-alive that was acknowledged was sent; and the last of all. */
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
  /** What `settled` found already (C2). */
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

  /** L1, L2. What is known of the end may come later than the end itself, never earlier. */
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

  /** What is said of a lease whose grant no client knows of matters to nobody. */
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
