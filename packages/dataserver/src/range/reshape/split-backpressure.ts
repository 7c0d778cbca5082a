import { type Clock, ServiceError } from '@remora/base';
import type { Command } from '@remora/protocol';
import { putsValues } from '../requests/puts-values.ts';

export interface SplitBackpressureDeps {
  readonly clock: Clock;
  /** How near the range is to its maximum: from 0, where nobody waits, to 1 and beyond, where writes are refused. */
  readonly pressure: () => number;
}

/** A write that is held back. */
export interface HeldWrite {
  readonly go: () => void;
  readonly refuse: (error: ServiceError) => void;
}

/** The longest that a write waits before it is proposed. */
const WAIT_MAX_MS = 100;
/** More are refused. */
const WAITING_MAX = 10_000;
/** When whoever was refused is to ask again: splits take about this long. */
const RETRY_AFTER_MS = 200;

/**
 * Holds writers of a range back that grows faster than it is split.
 *
 * WB1. Only what puts values waits. What deletes, reads, releases, renews, or ends a transaction never does: it does
 *      not make the range larger, or others wait for it.
 * WB2. A write waits the longer the nearer the range is to its maximum, at most `WAIT_MAX_MS`; at the maximum it is
 *      refused, which changes nothing, with a time after which to ask again. Clients do that by themselves.
 * WB3. Nobody is held back in vain: only while the range is measured or can be split (range-size.ts SZ4), and not once
 *      the split was refused (split-reasons.ts). So no write waits for what does not come.
 */
export class SplitBackpressure {
  readonly #deps: SplitBackpressureDeps;
  #waiting = 0;

  constructor(deps: SplitBackpressureDeps) {
    this.#deps = deps;
  }

  /** Writes that wait now. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Whether the command is to be held back now. */
  slows(command: Command): boolean {
    return this.#deps.pressure() > 0 && putsValues(command); // WB1
  }

  /** Holds a command back that it `slows`: it goes on, or is refused, by itself. */
  hold({ go, refuse }: HeldWrite): void {
    const pressure = this.#deps.pressure();
    if (pressure >= 1 || this.#waiting >= WAITING_MAX) return refuse(tooLarge());
    this.#waiting++;
    this.#deps.clock.setTimer(Math.ceil(pressure * WAIT_MAX_MS), () => {
      this.#waiting--;
      go();
    });
  }
}

/** WB2. */
function tooLarge(): ServiceError {
  return new ServiceError('RESOURCE_EXHAUSTED', 'the range is too large, and is being split; try again later', {
    details: { retryAfterMs: RETRY_AFTER_MS },
  });
}
