import type { Clock } from '@remora/base';

const FIRST_MS = 1_000;
const LONGEST_MS = 60_000;

interface Pause {
  readonly ms: number;
  readonly untilMs: number;
}

/** Pauses before an operation on a range is retried. Each failure doubles the pause. */
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

  /** Forgets all other ranges, because another node leads them now. */
  keepOnly(ranges: { has(rangeId: number): boolean }): void {
    for (const rangeId of this.#pauses.keys()) if (!ranges.has(rangeId)) this.#pauses.delete(rangeId);
  }
}
