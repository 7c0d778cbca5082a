/** What keeps the lock of `Redlock.using` from expiring, and tells its routine if that fails. */
import { ServiceError, type Timer } from '@remora/base';
import type { ClientPorts } from '../ports.ts';
import { onAbort } from '../transport/abort.ts';
import { pause } from './acquisition.ts';
import { ExecutionError, isHopeless, ResourceLockedError, voteOf } from './redlock-errors.ts';
import { pauseMs, type Settings } from './settings.ts';

/** `error`: why it aborted. `reason` is the same. */
export type RedlockAbortSignal = AbortSignal & { error?: Error };

/** The fencing versions of the lock under which a routine runs: see `Lock.version` and `Lock.versions`. */
export interface UsedLock {
  readonly version: number;
  readonly versions: readonly number[];
}

/** What of a duration has to be left for an extension. */
const MARGIN_MS = 100;

/** @throws ServiceError INVALID_ARGUMENT when an extension would begin before the lock is held. */
export function requireThreshold(duration: number, { automaticExtensionThreshold: threshold }: Settings): void {
  if (threshold <= duration - MARGIN_MS) return;
  throw new ServiceError(
    'INVALID_ARGUMENT',
    `using: expected a duration of at least ${threshold + MARGIN_MS} ms, which is automaticExtensionThreshold and ` +
      `${MARGIN_MS} ms, got ${duration}`,
  );
}

interface Extended<L> {
  readonly extend: (lock: L) => Promise<L>;
  /** Aborts when the lock is lost; undefined: there is nothing to lose. */
  readonly lost: AbortSignal | undefined;
  readonly settings: Settings;
  readonly ports: ClientPorts;
}

export class AutoExtension<L extends { readonly expiration: number }> {
  readonly signal: RedlockAbortSignal;
  readonly #controller = new AbortController();
  readonly #how: Extended<L>;
  readonly #forgetLost: (() => void) | undefined;
  #lock: L;
  #timer: Timer | undefined;
  #running: Promise<void> | undefined;
  #ended = false;

  constructor(lock: L, how: Extended<L>) {
    this.signal = this.#controller.signal;
    this.#lock = lock;
    this.#how = how;
    const { lost } = how;
    this.#forgetLost = lost && onAbort(lost, () => this.#abort(voteOf(lost.reason)));
    if (lost?.aborted) this.#abort(voteOf(lost.reason));
    this.#plan();
  }

  /** No extension begins any more. Returns the lock as it was extended last. */
  async end(): Promise<L> {
    this.#ended = true;
    this.#timer?.cancel();
    this.#forgetLost?.();
    await this.#running;
    return this.#lock;
  }

  #plan(): void {
    if (this.#ended || this.signal.aborted) return;
    const { clock } = this.#how.ports;
    const leftMs = this.#lock.expiration - clock.wallMs() - this.#how.settings.automaticExtensionThreshold;
    this.#timer = clock.setTimer(Math.max(0, leftMs), () => {
      this.#running = this.#extend();
    });
  }

  /** An extension that fails is repeated as long as the lock is held: the work need not stop before it has to. */
  async #extend(): Promise<void> {
    const { extend, settings, ports } = this.#how;
    while (!this.signal.aborted) {
      try {
        this.#lock = await extend(this.#lock);
        return this.#plan();
      } catch (error) {
        if (this.#ended) return;
        const isHeld = this.#lock.expiration > ports.clock.wallMs();
        if (!isHeld || isFinal(error)) return this.#abort(voteOf(error));
        await pause(ports, Math.max(PAUSE_MS_MIN, pauseMs(settings, ports.random)));
      }
    }
  }

  #abort(error: Error): void {
    if (this.#ended || this.signal.aborted) return;
    this.signal.error = error;
    this.#controller.abort(error);
  }
}

/** With a `retryDelay` of 0, a cluster that refuses at once would be asked without a pause. */
const PAUSE_MS_MIN = 10;

function isFinal(error: unknown): boolean {
  const cause = error instanceof ExecutionError ? error.cause : error;
  return isHopeless(cause) || voteOf(cause) instanceof ResourceLockedError;
}
