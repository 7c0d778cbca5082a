import { setTimeout as pause } from 'node:timers/promises';
import { longestGap, type TimeSpan } from './gaps.ts';

/** Asks one thing again and again, one call after the other, and keeps when it was answered. */
export class Prober {
  readonly #successes: number[] = [];
  readonly #running: Promise<void>;
  #failures = 0;
  #stopped = false;

  constructor(ask: () => Promise<unknown>, everyMs: number) {
    this.#running = this.#ask(ask, everyMs);
  }

  get failures(): number {
    return this.#failures;
  }

  longestGap(time: TimeSpan): number {
    return longestGap(this.#successes, time);
  }

  /** Waits for the call that is under way. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#running;
  }

  async #ask(ask: () => Promise<unknown>, everyMs: number): Promise<void> {
    while (!this.#stopped) {
      const nextMs = performance.now() + everyMs;
      try {
        await ask();
        this.#successes.push(performance.now());
      } catch {
        this.#failures++;
      }
      const restMs = nextMs - performance.now();
      if (restMs > 0) await pause(restMs);
    }
  }
}
