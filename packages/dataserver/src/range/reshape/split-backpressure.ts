import { type Clock, ServiceError } from '@remora/base';
import type { Command } from '@remora/protocol';
import { putsValues } from '../requests/puts-values.ts';

export interface SplitBackpressureDeps {
  readonly clock: Clock;
  /** How near the range is to its maximum: from 0, where no write waits, to 1 and beyond, where writes are refused. */
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
/** The retry delay for refused callers: splits take about this long. */
const RETRY_AFTER_MS = 200;

/**
 * Holds writers back if a range grows faster than it is split.
 *
 * WB1. Only commands that put values wait. Deletes, reads, releases, renewals and ends of transactions never wait: they
 *      do not make the range larger, and others wait for them.
 * WB2. The nearer the range is to its maximum, the longer a write waits, at most `WAIT_MAX_MS`. At the maximum the
 *      write is refused without changing anything, with a retry delay. Clients retry automatically.
 * WB3. Writers are held back only while that helps: while the range is measured or can be split (range-size.ts SZ4),
 *      and not once the split was refused (split-reasons.ts). So no write waits for a split that does not come.
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

  /** Whether the command should be held back now. */
  slows(command: Command): boolean {
    return this.#deps.pressure() > 0 && putsValues(command); // WB1
  }

  /** Holds a command for which `slows` is true; later it continues or is refused automatically. */
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
