/**
 * How redlock's attempts become an acquire.
 *
 * RA1. The first attempt does not wait.
 * RA2. One resource: the other attempts are one wait in the queue of the lock, as long as the pauses between them would
 *      be. A lock that becomes free is granted at once, in order, without polling. Each pause that passes meanwhile
 *      counts as an attempt that found the resource locked. A wait too short to be confirmed ends with an attempt like
 *      the first one.
 * RA3. Several resources: each attempt asks for all of them and leaves none behind. Nothing is held while waiting, so
 *      that calls with overlapping resources cannot wait for each other.
 */
import { ServiceError, type Timer } from '@remora/base';
import type { RemoraClient } from '../client.ts';
import type { ClientPorts } from '../ports.ts';
import type { Attempts } from './attempts.ts';
import type { Held } from './held.ts';
import { isHopeless, ResourceLockedError, voteOf } from './redlock-errors.ts';
import { pauseMs, type Settings } from './settings.ts';

export interface Wanted {
  readonly client: RemoraClient;
  readonly ports: ClientPorts;
  readonly resources: readonly string[];
  readonly ttlMs: number;
  readonly settings: Settings;
}

/** @throws ExecutionError when no attempt succeeded. */
export async function acquireAll(wanted: Wanted, attempts: Attempts): Promise<Held> {
  const what = `acquire of ${wanted.resources.join(', ')}`;
  if (wanted.resources.length !== 1) return repeat(wanted, attempts, { what, attempt: () => acquireOnce(wanted, 0) });
  let attempt = (): Promise<Held> => acquireOnce(wanted, 0);
  return repeat(wanted, attempts, {
    what,
    attempt: () => attempt(),
    onLocked: () => {
      attempt = () => acquireInQueue(wanted, attempts);
    },
    afterLocked: 'waits',
  });
}

export interface Repeated<T> {
  readonly what: string;
  readonly attempt: () => Promise<T>;
  /** Called when an attempt found a resource locked. */
  readonly onLocked?: () => void;
  /** After an attempt that found a resource locked: the next one waits by itself, or there is none. */
  readonly afterLocked?: 'waits' | 'ends';
}

/** Attempts until one succeeds, the attempts are used up, or there is no hope. @throws ExecutionError */
export async function repeat<T>(
  { ports, settings }: Pick<Wanted, 'ports' | 'settings'>,
  attempts: Attempts,
  { what, attempt, onLocked, afterLocked }: Repeated<T>,
): Promise<T> {
  for (;;) {
    try {
      const result = await attempt();
      attempts.succeeded();
      return result;
    } catch (error) {
      attempts.failed(error);
      const isLocked = voteOf(error) instanceof ResourceLockedError;
      const isFinal = isHopeless(error) || (isLocked && afterLocked === 'ends');
      if (attempts.left <= 0 || isFinal) throw attempts.error(what, error);
      if (isLocked) onLocked?.();
      if (!isLocked || afterLocked !== 'waits') await pause(ports, pauseMs(settings, ports.random));
    }
  }
}

/** A pause between attempts, as a call, keeps the process alive. */
export function pause({ clock, liveness }: ClientPorts, ms: number): Promise<void> {
  liveness.hold();
  return new Promise((resolve) => {
    clock.setTimer(ms, () => {
      liveness.release();
      resolve();
    });
  });
}

/** `wait`: undefined waits as long as it takes. */
async function acquireOnce({ client, resources, ttlMs }: Wanted, wait: number | undefined): Promise<Held> {
  const options = { ttl: ttlMs, renew: false, wait };
  const [first, ...others] = resources;
  if (first === undefined) return undefined;
  return others.length === 0 ? client.lock(first).acquire(options) : client.lockAll(resources).acquire(options);
}

/** RA2. */
async function acquireInQueue(wanted: Wanted, attempts: Attempts): Promise<Held> {
  const { clock, random } = wanted.ports;
  const nextPauseMs = (): number => Math.max(1, pauseMs(wanted.settings, random));
  const unlimited = attempts.left === Number.POSITIVE_INFINITY;
  const pausesMs = unlimited ? [] : Array.from({ length: attempts.left }, nextPauseMs);
  const waitMs = unlimited ? undefined : pausesMs.reduce((sum, ms) => sum + ms, 0);
  let timer: Timer | undefined;
  let over = false;
  const passed = (): void => {
    // The last attempt is that of the answer.
    if (over || attempts.left <= 1) return;
    attempts.failed(stillLocked(wanted));
    next();
  };
  const next = (): void => {
    timer = clock.setTimer(pausesMs.shift() ?? nextPauseMs(), passed);
  };
  next();
  try {
    return await acquireOnce(wanted, waitMs);
  } catch (error) {
    const isShort = error instanceof ServiceError && error.code === 'DEADLINE_EXCEEDED';
    if (unlimited || !(isShort || voteOf(error) instanceof ResourceLockedError)) throw error;
    over = true;
    // The pauses that end with the wait.
    while (attempts.left > 1) attempts.failed(stillLocked(wanted));
    if (isShort) return await acquireOnce(wanted, 0);
    throw error;
  } finally {
    over = true;
    timer?.cancel();
  }
}

function stillLocked({ resources }: Wanted): ResourceLockedError {
  return new ResourceLockedError(`the resource is still locked: ${resources.join(', ')}`);
}
