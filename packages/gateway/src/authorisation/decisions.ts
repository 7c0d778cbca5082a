/**
 * Decides about whole requests.
 *
 * DE1. All needs of a request are decided by one revision of users and roles. What is known of leases is asked before;
 *      if another revision is in force by then, everything is decided again.
 * DE2. A decision and the beginning of its request are in one turn, so the request carries the revision by which it was
 *      decided.
 * DE3. Nothing is asked about a lease for a caller who is refused anyway, or who has the role root.
 * DE4. That somebody may renew a lease is remembered for `RENEWAL_MS`, for one revision: a heartbeat costs no questions
 *      to ranges. Refusals are not remembered.
 */
import { type Authority, isPlain, type KnownAuth, type Need, type PlainNeed, type Principal } from '@remora/auth';
import { type Bytes, type Clock, ServiceError, toServiceError } from '@remora/base';
import type { ClearedBackend } from './cleared-backend.ts';

type Decided = (refusal: ServiceError | undefined, revision: number) => void;

/** DE4. */
const RENEWAL_MS = 10_000;
const RENEWALS_MAX = 20_000;
/** How often a request is decided again because users and roles have changed meanwhile (DE1). */
const ROUNDS_MAX = 8;

export interface DecisionsDeps {
  readonly known: KnownAuth;
  readonly clock: Clock;
  readonly ranges: Pick<ClearedBackend, 'query'>;
}

/** A request, as far as decisions see it. */
export interface Asking {
  readonly principal: Principal | undefined;
  readonly needs: readonly Need[];
  /** The lease, if it is renewed (DE4). */
  readonly renewed?: string | undefined;
}

export class Decisions {
  readonly #deps: DecisionsDeps;
  /** Until when each renewal is allowed; all by `#renewalRevision`. */
  readonly #renewals = new Map<string, number>();
  #renewalRevision = 0;

  constructor(deps: DecisionsDeps) {
    this.#deps = deps;
  }

  /** Decides at once, by what is known now. @throws ServiceError the refusal */
  check(principal: Principal | undefined, needs: readonly PlainNeed[]): number {
    const { known } = this.#deps;
    if (needs.length > 0 && needs.every(isWithoutMasters)) {
      known.lastKnown?.check(principal?.name, needs);
      return known.revision;
    }
    const { authority } = known;
    authority.check(principal?.name, needs);
    return authority.revision;
  }

  /** Calls back once, perhaps before it returns. Returns a function that gives up. */
  decide(asking: Asking, timeoutMs: number, decided: Decided): () => void {
    const { clock } = this.#deps;
    const endsMs = clock.monotonicMs() + timeoutMs;
    let isOver = false;
    const end: Decided = (refusal, revision) => {
      if (!isOver) decided(refusal, revision);
      isOver = true;
    };
    const giveUpWaiting = this.#deps.known.whenKnown(1, timeoutMs, () => {
      if (!isOver) this.#round(asking, { endsMs, rounds: 0 }, end);
    });
    return () => {
      isOver = true;
      giveUpWaiting();
    };
  }

  #round(asking: Asking, { endsMs, rounds }: { readonly endsMs: number; readonly rounds: number }, end: Decided): void {
    const { known } = this.#deps;
    let authority: Authority;
    try {
      authority = known.authority;
      authority.check(asking.principal?.name, asking.needs.filter(isPlain));
    } catch (error) {
      return end(toServiceError(error), known.revision);
    }
    const { principal } = asking;
    if (!needsLeases(asking, authority) || this.#isRenewal(asking, authority.revision)) {
      return end(undefined, authority.revision); // DE2, DE3
    }
    const remainingMs = endsMs - this.#deps.clock.monotonicMs();
    this.#leaseNeeds(asking.needs, remainingMs).then(
      (needs) => {
        if (known.revision === authority.revision) {
          const refusal = refusalOf(() => this.check(principal, needs));
          if (refusal === undefined) this.#rememberRenewal(asking, authority.revision);
          return end(refusal, authority.revision);
        }
        if (rounds < ROUNDS_MAX) return this.#round(asking, { endsMs, rounds: rounds + 1 }, end); // DE1
        end(new ServiceError('UNAVAILABLE', 'users and roles change all the time; try again'), known.revision);
      },
      (error: unknown) => end(toServiceError(error), known.revision),
    );
  }

  /** What the needs that depend on leases come to, for the leases as they are now. */
  async #leaseNeeds(needs: readonly Need[], timeoutMs: number): Promise<readonly PlainNeed[]> {
    const found: PlainNeed[] = [];
    for (const need of needs) {
      if (need.type !== 'leaseKeys') continue;
      const { access } = need;
      for (const key of await this.#keysOf(need.lease, timeoutMs)) found.push({ type: 'keys', access, key });
    }
    return found;
  }

  #keysOf(lease: bigint, timeoutMs: number): Promise<readonly Bytes[]> {
    return new Promise((resolve, reject) => {
      const query = { type: 'leaseTimeToLive', id: lease, keys: true } as const;
      this.#deps.ranges.query(query, { timeoutMs: Math.max(1, timeoutMs) }, (error, reply) => {
        if (reply?.result.type === 'leaseTimeToLive') resolve(reply.result.lease.keys);
        else if (error?.code === 'LEASE_NOT_FOUND') resolve([]);
        else reject(error ?? new ServiceError('INTERNAL', 'a lease was not answered for'));
      });
    });
  }

  /** DE4. */
  #isRenewal(asking: Asking, revision: number): boolean {
    if (asking.renewed === undefined || this.#renewalRevision !== revision) return false;
    const untilMs = this.#renewals.get(renewalOf(asking));
    return untilMs !== undefined && this.#deps.clock.monotonicMs() < untilMs;
  }

  #rememberRenewal(asking: Asking, revision: number): void {
    if (asking.renewed === undefined) return;
    if (this.#renewalRevision !== revision || this.#renewals.size >= RENEWALS_MAX) this.#renewals.clear();
    this.#renewalRevision = revision;
    this.#renewals.set(renewalOf(asking), this.#deps.clock.monotonicMs() + RENEWAL_MS);
  }
}

function isWithoutMasters(need: PlainNeed): boolean {
  return 'withoutMasters' in need && need.withoutMasters === true;
}

/** DE3. */
function needsLeases({ principal, needs }: Asking, authority: Authority): boolean {
  return needs.some((need) => need.type === 'leaseKeys') && !authority.mayDoEverything(principal?.name);
}

function renewalOf({ principal, renewed }: Asking): string {
  return `${renewed} ${principal?.name}`;
}

export function refusalOf(check: () => unknown): ServiceError | undefined {
  try {
    check();
    return undefined;
  } catch (error) {
    return toServiceError(error);
  }
}
