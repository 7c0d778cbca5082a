import type { Clock, Random } from '@remora/base';
import { ServiceError } from '@remora/base';
import { type ArgumentCheck, checkOptions, optionSet, shown } from '../options/options.ts';

/** What is left to choose. Each call may override it. */
export interface Settings {
  /**
   * How much less than its duration a lock counts as held, as a fraction of the duration, for `Lock.expiration`. The
   * cluster allows for clocks that are 5 % off in any case. Default 0.01.
   */
  readonly driftFactor: number;
  /** How many further attempts follow the first one; -1: no limit. Default 10. */
  readonly retryCount: number;
  /** The time between two attempts, in ms. Default 200. */
  readonly retryDelay: number;
  /** By how much that time is varied at random, in ms, in both directions. Default 100. */
  readonly retryJitter: number;
  /** `using` extends its lock when this much of its duration is left, in ms. Default 500. */
  readonly automaticExtensionThreshold: number;
}

export const DEFAULT_SETTINGS: Settings = {
  ...{ driftFactor: 0.01, retryCount: 10, retryDelay: 200, retryJitter: 100, automaticExtensionThreshold: 500 },
};

const atLeastZero: ArgumentCheck = (value, name) => {
  if (typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER) return;
  throw wrong(name, 'a number of at least 0', value);
};
const retries: ArgumentCheck = (value, name) => {
  if (value === -1) return;
  if (Number.isSafeInteger(value) && (value as number) >= 0) return;
  throw wrong(name, 'a whole number of at least 0, or -1 for no limit', value);
};

export const REDLOCK_SETTINGS = optionSet<Settings>('redlock', {
  ...{ driftFactor: atLeastZero, retryCount: retries, retryDelay: atLeastZero, retryJitter: atLeastZero },
  automaticExtensionThreshold: atLeastZero,
});

/** @throws ServiceError INVALID_ARGUMENT for a setting that is unknown or has a wrong value. */
export function settingsOf(given: Partial<Settings>, otherwise: Settings): Settings {
  checkOptions(REDLOCK_SETTINGS, given);
  const { driftFactor, retryCount, retryDelay, retryJitter, automaticExtensionThreshold } = given;
  return {
    driftFactor: driftFactor ?? otherwise.driftFactor,
    retryCount: retryCount ?? otherwise.retryCount,
    retryDelay: retryDelay ?? otherwise.retryDelay,
    retryJitter: retryJitter ?? otherwise.retryJitter,
    automaticExtensionThreshold: automaticExtensionThreshold ?? otherwise.automaticExtensionThreshold,
  };
}

/** How many attempts there are at most. */
export function attemptsMax({ retryCount }: Settings): number {
  return retryCount === -1 ? Number.POSITIVE_INFINITY : retryCount + 1;
}

/** The pause before the next attempt, in ms. */
export function pauseMs({ retryDelay, retryJitter }: Settings, random: Random): number {
  const spread = Math.ceil(retryJitter);
  return Math.max(0, retryDelay + random.int(2 * spread + 1) - spread);
}

/**
 * The moment until which a lock counts as held, in ms since 1970. `certainMs`: how long it is certain to be held, which
 * is less than the duration if the answer of the cluster took long.
 */
export function expirationOf(
  { durationMs, certainMs }: { readonly durationMs: number; readonly certainMs: number },
  { driftFactor }: Settings,
  clock: Clock,
): number {
  const heldMs = Math.min(durationMs, Math.floor(certainMs));
  return clock.wallMs() + heldMs - Math.round(driftFactor * durationMs) - ROUNDING_MS;
}

/** For the precision of the expiry and for the time that rounding may take away. */
const ROUNDING_MS = 2;

/** @throws ServiceError INVALID_ARGUMENT for anything but a whole number of ms above 0. */
export function requireDuration(duration: number): void {
  if (Number.isSafeInteger(duration) && duration > 0) return;
  throw wrong('duration', 'a whole number of milliseconds above 0', duration);
}

function wrong(name: string, expected: string, value: unknown): ServiceError {
  return new ServiceError('INVALID_ARGUMENT', `${name}: expected ${expected}, got ${shown(value)}`);
}
