/**
 * Decides about whole requests.
 *
 * DE1. All needs of a request are decided by one revision of users and roles. What is known of leases is asked before;
 *      if another revision is in force by then, everything is decided again.
 * DE2. A decision and the beginning of its request are in one turn, so the request carries the revision by which it was
 *      decided.
 * DE3. Nothing is asked about a lease for a caller who is refused anyway, or who has the role root. Only an audit log
 *      has to show whose session root ends or changes (audited-calls.ts AC4).
 * DE4. That somebody may renew a lease is remembered for `RENEWAL_MS`, for one revision: a heartbeat costs no questions
 *      to ranges. Refusals are not remembered.
 */
import {
  type Authority,
  isPlain,
  type KnownAuth,
  type LeaseNeed,
  type Need,
  type PlainNeed,
  type Principal,
} from '@remora/auth';
import { type Clock, ServiceError, toServiceError } from '@remora/base';
import type { ClearedBackend } from './cleared-backend.ts';
import { LeaseNeeds, type PlainNeeds } from './lease-needs.ts';

/** `leases`: what its needs about leases come to; nothing if they were not looked up (DE3, DE4). */
type Decided = (refusal: ServiceError | undefined, revision: number, leases: PlainNeeds) => void;

const NO_LEASES: PlainNeeds = { needs: [], ends: 0 };

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
  /** Whether it is recorded in an audit log (DE3). */
  readonly isAudited?: boolean;
}

export class Decisions {
  readonly #deps: DecisionsDeps;
  readonly #leases: LeaseNeeds;
  /** Until when each renewal is allowed; all by `#renewalRevision`. */
  readonly #renewals = new Map<string, number>();
  #renewalRevision = 0;

  constructor(deps: DecisionsDeps) {
    this.#deps = deps;
    this.#leases = new LeaseNeeds(deps.ranges);
  }

  /** Decides at once, by what is known now. @throws ServiceError the refusal */
  check(principal: Principal | undefined, needs: readonly PlainNeed[]): number {
    const { known } = this.#deps;
    if (needs.length > 0 && needs.every(isWithoutMasters)) {
      known.lastKnown?.check(principal, needs);
      return known.revision;
    }
    const { authority } = known;
    authority.check(principal, needs);
    return authority.revision;
  }

  /** Calls back once, perhaps before it returns. Returns a function that gives up. */
  decide(asking: Asking, timeoutMs: number, decided: Decided): () => void {
    const { clock } = this.#deps;
    const endsMs = clock.monotonicMs() + timeoutMs;
    let isOver = false;
    const end: Decided = (refusal, revision, leases) => {
      if (!isOver) decided(refusal, revision, leases);
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
      authority.check(asking.principal, asking.needs.filter(isPlain));
    } catch (error) {
      return end(toServiceError(error), known.revision, NO_LEASES);
    }
    const { principal, needs } = asking;
    if (!needsLeases(asking, authority) || this.#isRenewal(asking, authority.revision)) {
      return end(undefined, authority.revision, NO_LEASES); // DE2, DE3
    }
    const found = this.#leases.known(needs, principal?.name);
    if (found !== undefined) return this.#decideLeases(asking, authority, found, end);
    const remainingMs = endsMs - this.#deps.clock.monotonicMs();
    this.#leases.ask(needs, principal?.name, remainingMs).then(
      (asked) => {
        if (known.revision === authority.revision) return this.#decideLeases(asking, authority, asked, end);
        if (rounds < ROUNDS_MAX) return this.#round(asking, { endsMs, rounds: rounds + 1 }, end); // DE1
        const refusal = new ServiceError('UNAVAILABLE', 'users and roles change all the time; try again');
        end(refusal, known.revision, NO_LEASES);
      },
      (error: unknown) => end(toServiceError(error), known.revision, NO_LEASES),
    );
  }

  #decideLeases(asking: Asking, { revision }: Authority, leases: PlainNeeds, end: Decided): void {
    const { needs } = leases;
    const refusal = refusalOf(() => this.check(asking.principal, needs));
    if (refusal === undefined) this.#rememberRenewal(asking, revision);
    end(refusal, revision, leases);
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
function needsLeases({ principal, needs, isAudited }: Asking, authority: Authority): boolean {
  if (needs.every(isPlain)) return false;
  if (!authority.mayDoEverything(principal?.name)) return true;
  return isAudited === true && authority.enabled && needs.some((need) => !isPlain(need) && mayBeSteering(need));
}

/** The uses of a session of which an audit log has to show whether it is another user's. */
function mayBeSteering(need: LeaseNeed): boolean {
  return need.type !== 'leaseKeys' && (need.use === 'end' || need.use === 'change');
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
