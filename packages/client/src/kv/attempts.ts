import { type Clock, type Random, ServiceError, sleep } from '@remora/base';

/** The longest pause between two attempts, in ms. */
const PAUSE_MAX_MS = 50;

export interface AttemptsOptions {
  /** The time for all attempts together. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
  /** What the attempts are for, in messages. */
  readonly what: string;
}

/**
 * The attempts of a change that depends on what was read: each one reads, and writes only if nothing that it read has
 * changed.
 *
 * AT1. Another attempt follows only one that has certainly changed nothing. An attempt whose outcome is unknown ends
 *      all of them.
 * AT2. All of them share one time limit.
 */
export class Attempts {
  readonly #ports: { readonly clock: Clock; readonly random: Random };
  readonly #options: AttemptsOptions;
  readonly #endsMs: number;
  #count = 0;

  constructor(ports: { readonly clock: Clock; readonly random: Random }, options: AttemptsOptions) {
    this.#ports = ports;
    this.#options = options;
    this.#endsMs = ports.clock.monotonicMs() + options.timeoutMs;
  }

  /** AT2. The options of a request that belongs to the present attempt. @throws ServiceError DEADLINE_EXCEEDED. */
  get request(): { readonly timeout: number; readonly signal: AbortSignal | undefined } {
    const leftMs = this.#endsMs - this.#ports.clock.monotonicMs();
    if (leftMs < 1) throw this.#tooMany();
    return { timeout: leftMs, signal: this.#options.signal };
  }

  /**
   * AT1. Waits a random moment before the next attempt, longer after more of them, so that rivals get out of each
   * other's way.
   */
  async again(): Promise<void> {
    const { signal } = this.#options;
    const ceilingMs = Math.min(PAUSE_MAX_MS, 2 ** Math.min(++this.#count, 10));
    try {
      await sleep(this.#ports.clock, this.#ports.random.int(ceilingMs), signal);
    } catch (cause) {
      throw new ServiceError('CANCELED', 'the caller aborted; nothing was written', { cause });
    }
  }

  #tooMany(): ServiceError {
    const { what, timeoutMs } = this.#options;
    const lost = `other clients changed what it read ${this.#count} times`;
    const message = `${what}: not done within ${Math.round(timeoutMs)} ms, and nothing was written; ${lost}`;
    return new ServiceError('DEADLINE_EXCEEDED', message);
  }
}
