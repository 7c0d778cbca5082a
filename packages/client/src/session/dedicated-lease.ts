import { ServiceError } from '@remora/base';
import { type Condition, conditionRefusal, conditionTtlMs, holderMissesMax, TTL_NEVER_MS } from '@remora/lock';
import { type Duration, durationMs, ttlMsOf } from '../options/duration.ts';
import { duration, flag, misses, object, ttlOrNever } from '../options/option-kinds.ts';
import { type ChecksOf, checkOptions, optionSet } from '../options/options.ts';
import type { Session } from './session.ts';
import type { SessionTerms } from './session-pace.ts';

/**
 * A lock whose lifetime differs from that of its client's session has a lease of its own: a session with one lock
 * (docs/decisions/0035).
 *
 * OL1. While the acquire waits, the lease is renewed like any other, so that a waiter that dies leaves the queue soon.
 *      The special terms (no renewal, no expiry, a limit) begin with the grant.
 * OL2. The lease ends with its lock: when the lock is released, given up or taken away. Only `leave` leaves it behind.
 */
export interface LeaseOptions {
  /**
   * How long the lock outlives the last heartbeat of its holder, at least 100 ms; the lock has a lease of its own then.
   * `'never'`: the lock stays held until it is released by its holder, by force, or by closing its session, however
   * long the holder has been gone. Default: the lock shares the client's session.
   */
  readonly ttl?: Duration | 'never' | undefined;
  /**
   * `false`: the lock is held for `ttl` and no longer, unless `extend` is called. Default true: renewed while it is
   * held.
   */
  readonly renew?: boolean | undefined;
  /**
   * How long the lock is held at most, however often it is renewed: `lock.signal` aborts then. The lock is free at once
   * when it is released, and at the latest one TTL after that. Default: no limit.
   */
  readonly maxHold?: Duration | undefined;
  /** When a holder whose heartbeats stay away loses the lock, in place of `ttl`. */
  readonly condition?: LockCondition | undefined;
}

export const LEASE_CHECKS: ChecksOf<LeaseOptions> = {
  ...{ ttl: ttlOrNever, renew: flag, maxHold: duration, condition: object },
};

/** When a holder whose heartbeats stay away loses its lock. */
export interface LockCondition {
  /** How often the holder sends a heartbeat. */
  readonly heartbeat: Duration;
  /** The cluster frees the lock after this many missed heartbeats, 3 to 1,000. */
  readonly serverMisses: number;
  /**
   * The holder stops using the lock (its signal aborts) after this many unanswered heartbeats, 2 or more. That has to
   * be certainly before the cluster frees the lock. Default: the highest number that leaves a margin.
   */
  readonly holderMisses?: number | undefined;
}

export const CONDITION = optionSet<LockCondition>('condition', {
  ...{ heartbeat: duration, serverMisses: misses, holderMisses: misses },
});

/** The terms of a lease once its lock is granted. */
interface Plan {
  readonly renew: boolean;
  readonly never: boolean;
  readonly maxHoldMs: number | undefined;
}

export interface DedicatedLeaseRequest extends Plan {
  /** Undefined: the TTL of the client's sessions. */
  readonly terms: SessionTerms | undefined;
}

/** A lease of its own with the terms of the client's sessions. */
export const AS_SESSIONS: DedicatedLeaseRequest = { terms: undefined, renew: true, never: false, maxHoldMs: undefined };

/** A fraction of the TTL: if the wait has used up less, the grant needs no renewal. */
const SPENT_FRACTION = 0.02;
/** How long ending a lease is retried at first; after that `lease-endings.ts` retries it with longer pauses. */
const CLOSE_TIMEOUT_MS = 30_000;

/**
 * Undefined: the lock shares its client's session.
 *
 * @throws ServiceError INVALID_ARGUMENT for options that contradict one another.
 */
export function dedicatedLeaseRequest(options: LeaseOptions): DedicatedLeaseRequest | undefined {
  const { ttl, renew = true, maxHold, condition } = options;
  if (ttl === undefined && condition === undefined && maxHold === undefined && renew) return undefined;
  const agreed = condition === undefined ? undefined : conditionOf(condition);
  const never = ttl === 'never' && agreed === undefined;
  const ttlMs = ttl === undefined || ttl === 'never' ? undefined : ttlMsOf(ttl, 'ttl');
  const maxHoldMs = maxHold === undefined ? undefined : positive(durationMs(maxHold, 'maxHold'), 'maxHold');
  if (agreed !== undefined && ttlMs !== undefined && ttlMs !== conditionTtlMs(agreed)) {
    throw invalid('ttl and condition contradict each other: omit ttl, or set it to heartbeat × serverMisses');
  }
  if (!renew && agreed !== undefined)
    throw invalid('renew: false and condition contradict each other: omit one of them');
  if (!renew && ttl === undefined) throw invalid("renew: false needs a ttl, such as '30s'");
  if (never && maxHoldMs !== undefined)
    throw invalid("maxHold and ttl: 'never' contradict each other: omit maxHold, or set another ttl");
  const terms = agreed !== undefined ? termsOf(agreed) : ttlMs === undefined ? undefined : { ttlMs };
  return { terms, renew, never, maxHoldMs };
}

export class DedicatedLease {
  readonly #session: Session;
  readonly #plan: Plan;
  readonly #timeoutMs: number;
  #hasCondition: boolean;
  #ended = false;

  constructor(session: Session, plan: DedicatedLeaseRequest, timeoutMs: number) {
    this.#session = session;
    this.#plan = plan;
    this.#hasCondition = plan.terms?.condition !== undefined;
    this.#timeoutMs = timeoutMs;
  }

  /** OL1. Sets the special terms. @throws ServiceError when the cluster did not confirm them. */
  async begin(): Promise<void> {
    const { never, renew, maxHoldMs } = this.#plan;
    const session = this.#session;
    if (never) await this.#setTerms({ ttlMs: TTL_NEVER_MS });
    if (never || !renew) session.stopRenewing();
    // Makes up for the time of the wait. If this fails, `remainingMs` says how much of the TTL is left.
    if (!renew && !never && session.spentMs > session.ttlMs * SPENT_FRACTION) {
      await session.renew(this.#timeoutMs).catch(() => {});
    }
    if (maxHoldMs !== undefined) session.limitTo(maxHoldMs);
  }

  async extend(ttl: Duration | undefined): Promise<void> {
    if (ttl === undefined) return this.#session.renew(this.#timeoutMs);
    if (this.#hasCondition)
      throw invalid('extend with a ttl: the condition of the lock decides when it is freed; use setCondition');
    await this.#setTerms({ ttlMs: ttlMsOf(ttl, 'ttl') });
  }

  async setCondition(condition: LockCondition): Promise<void> {
    if (!this.#plan.renew || this.#plan.never)
      throw invalid('setCondition: the lock is not renewed, so it sends no heartbeats');
    const terms = termsOf(conditionOf(condition));
    this.#hasCondition = true;
    await this.#setTerms(terms);
  }

  /** Leaves the lock held, without renewals. */
  async leave(): Promise<void> {
    this.#ended = true;
    await this.#session.leave();
  }

  /** OL2. */
  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#session.end(CLOSE_TIMEOUT_MS).catch(() => {});
  }

  /** Longer terms apply from the next acknowledged heartbeat, so it sends one. */
  async #setTerms(terms: SessionTerms): Promise<void> {
    await this.#session.change(terms, this.#timeoutMs);
    await this.#session.renew(this.#timeoutMs);
  }
}

/** @throws ServiceError INVALID_ARGUMENT for an invalid condition, or one without a margin. */
function conditionOf(given: LockCondition): Condition {
  checkOptions(CONDITION, given);
  const { heartbeat, serverMisses, holderMisses } = given;
  const heartbeatMs = durationMs(heartbeat, 'condition.heartbeat');
  const condition = {
    heartbeatMs,
    serverMisses,
    holderMisses: holderMisses ?? holderMissesMax(heartbeatMs, serverMisses),
  };
  const wrong = conditionRefusal(condition);
  if (wrong !== undefined) throw invalid(`condition: ${wrong}`);
  return condition;
}

function termsOf(condition: Condition): SessionTerms {
  return { ttlMs: conditionTtlMs(condition), condition };
}

function positive(ms: number, what: string): number {
  if (ms > 0) return ms;
  throw invalid(`${what}: expected a duration above 0`);
}

function invalid(message: string): ServiceError {
  return new ServiceError('INVALID_ARGUMENT', message);
}
