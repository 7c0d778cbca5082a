/** Lock terms, as the loads of simulations and of chaos draw them. All times are in ms. */
import type { Random } from '@remora/base';
import type { AcquireOptions } from 'remora';

/** `session`: the terms of the client's session. `capped`: renewed, but only up to a limit. */
const KINDS = ['session', 'renewed', 'fixed', 'capped', 'condition'] as const;
export type TermKind = (typeof KINDS)[number];

export interface Terms {
  readonly kind: TermKind;
  /** For a capped lock: how long it may be held. */
  readonly ttlMs: number;
  readonly delayMs: number;
}

export interface TermBounds {
  readonly ttlMsMin: number;
  readonly ttlMsSpread: number;
  readonly delayMsMax: number;
  readonly heartbeatMsMin: number;
  readonly heartbeatMsSpread: number;
}

const MISSES_MIN = 5;
const MISSES_SPREAD = 5;

export function drawTerms(random: Random, bounds: TermBounds): Terms {
  return {
    kind: KINDS[random.int(KINDS.length)] ?? 'renewed',
    ttlMs: drawTtlMs(random, bounds),
    delayMs: random.int(2) === 0 ? 0 : 1 + random.int(bounds.delayMsMax),
  };
}

export function drawTtlMs(random: Random, { ttlMsMin, ttlMsSpread }: TermBounds): number {
  return ttlMsMin + random.int(ttlMsSpread);
}

export function drawCondition(random: Random, { heartbeatMsMin, heartbeatMsSpread }: TermBounds) {
  return {
    heartbeat: heartbeatMsMin + random.int(heartbeatMsSpread),
    serverMisses: MISSES_MIN + random.int(MISSES_SPREAD),
  };
}

/** Whether a lock ends at a time that no heartbeat extends. */
export function isLimited(kind: TermKind): boolean {
  return kind === 'fixed' || kind === 'capped';
}

export function optionsOf(terms: Terms, random: Random, bounds: TermBounds): AcquireOptions {
  const { kind, ttlMs: ttl, delayMs: lockDelay } = terms;
  switch (kind) {
    case 'session':
      return { lockDelay };
    case 'renewed':
      return { lockDelay, ttl };
    case 'fixed':
      return { lockDelay, ttl, renew: false };
    case 'capped':
      return { lockDelay, ttl: bounds.ttlMsMin, maxHold: ttl };
    case 'condition':
      return { lockDelay, condition: drawCondition(random, bounds) };
  }
}
