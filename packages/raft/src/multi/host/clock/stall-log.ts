import { type Clock, type Logger, longestSection, type Timer } from '@remora/base';

const SUMMARY_MS = 60_000;

/**
 * Logs stalls of the event loop: the first one at once, then once a minute the number and the longest of them.
 * Otherwise a node without time would spend it on logging. Names the longest section of work (base/loop-sections.ts)
 * during the stall. Without a section, the time went to the machine, or to work that is no section.
 */
export class StallLog {
  readonly #clock: Clock;
  readonly #logger: Logger;
  /** Runs while stalls are counted. */
  #timer: Timer | undefined;
  #stalls = 0;
  #worstMs = 0;
  #worstSection: Readonly<Record<string, unknown>> = {};

  constructor(ports: { readonly clock: Clock; readonly logger: Logger }) {
    this.#clock = ports.clock;
    this.#logger = ports.logger;
  }

  stalled(elapsedMs: number): void {
    if (this.#timer === undefined) {
      this.#logger.warn(
        { elapsedMs: Math.round(elapsedMs), ...sectionOf(elapsedMs) },
        'the event loop stalled: the machine lacks CPU time or memory, or a computation took long; elections may follow',
      );
      this.#gather();
    } else {
      this.#stalls++;
      if (elapsedMs <= this.#worstMs) return;
      this.#worstMs = elapsedMs;
      this.#worstSection = sectionOf(elapsedMs);
    }
  }

  /** Logs what was counted so far. */
  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#tell();
  }

  #gather(): void {
    this.#timer = this.#clock.setTimer(SUMMARY_MS, () => {
      this.#timer = undefined;
      if (this.#tell()) this.#gather();
    });
  }

  /** Returns false if there is nothing to log. */
  #tell(): boolean {
    if (this.#stalls === 0) return false;
    const [stalls, worstMs] = [this.#stalls, Math.round(this.#worstMs)];
    this.#logger.warn(
      { stalls, worstMs, ...this.#worstSection },
      'the event loop stalled again; the count is since the last such message',
    );
    this.#stalls = 0;
    this.#worstMs = 0;
    this.#worstSection = {};
    return true;
  }
}

function sectionOf(elapsedMs: number): Readonly<Record<string, unknown>> {
  const longest = longestSection(elapsedMs);
  return longest === undefined ? {} : { section: longest.name, sectionMs: Math.round(longest.ownMs) };
}
