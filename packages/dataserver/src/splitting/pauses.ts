import type { Clock } from '@remora/base';

const FIRST_MS = 1_000;
const LONGEST_MS = 60_000;

interface Pause {
  readonly ms: number;
  readonly untilMs: number;
}

/** How long ranges wait before something is tried with them again that failed: twice as long each time. */
export class Pauses {
  readonly #clock: Clock;
  readonly #pauses = new Map<number, Pause>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  paused(rangeId: number): boolean {
    const pause = this.#pauses.get(rangeId);
    return pause !== undefined && this.#clock.monotonicMs() < pause.untilMs;
  }

  failed(rangeId: number): void {
    const known = this.#pauses.get(rangeId);
    const ms = known === undefined ? FIRST_MS : Math.min(LONGEST_MS, 2 * known.ms);
    this.#pauses.set(rangeId, { ms, untilMs: this.#clock.monotonicMs() + ms });
  }

  succeeded(rangeId: number): void {
    this.#pauses.delete(rangeId);
  }

  /** The others are forgotten: they are led by somebody else. */
  keepOnly(ranges: { has(rangeId: number): boolean }): void {
    for (const rangeId of this.#pauses.keys()) if (!ranges.has(rangeId)) this.#pauses.delete(rangeId);
  }
}
