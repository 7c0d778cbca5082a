import type { KnownAuth, Need, PlainNeed, Principal } from '@remora/auth';
import { ServiceError } from '@remora/base';
import type { Clearance } from './clearance.ts';
import type { Decisions } from './decisions.ts';

export interface ClearanceDeps {
  readonly known: KnownAuth;
  readonly decisions: Decisions;
  readonly isAudited: boolean;
}

/** That one request of a client is allowed (decisions.ts). Each request makes one, so it holds little. */
export class RequestClearance implements Clearance {
  readonly #deps: ClearanceDeps;
  readonly #needs: () => readonly Need[];
  readonly principal: Principal | undefined;
  revision: number;
  /** What its needs about leases came to when it was decided about, as far as that was looked up (decisions.ts DE3). */
  ofLeases: readonly PlainNeed[] = [];
  onRefused: ((refusal: ServiceError) => void) | undefined;

  /** `needs`: those of the whole request. Worked out only when it is decided about. */
  constructor(deps: ClearanceDeps, principal: Principal | undefined, needs: () => readonly Need[]) {
    this.#deps = deps;
    this.principal = principal;
    this.#needs = needs;
    this.revision = deps.known.revision;
  }

  get needs(): readonly Need[] {
    return this.#needs();
  }

  again(revision: number, timeoutMs: number, done: (refusal: ServiceError | undefined) => void): () => void {
    const { known, decisions, isAudited } = this.#deps;
    let giveUp = (): void => {};
    let isOver = false;
    const stop = known.whenKnown(revision, timeoutMs, () => {
      if (isOver) return;
      if (known.revision < revision) return done(notHeard(revision));
      const { principal, needs } = this;
      giveUp = decisions.decide({ principal, needs, isAudited }, timeoutMs, (refusal, decidedBy, leases) => {
        this.revision = decidedBy;
        this.ofLeases = leases.needs;
        if (!isOver) done(refusal);
      });
    });
    return () => {
      isOver = true;
      stop();
      giveUp();
    };
  }
}

function notHeard(revision: number): ServiceError {
  const message = `this node has not heard of the present users and roles (revision ${revision}); the request was not executed`;
  return new ServiceError('UNAVAILABLE', message);
}
