/**
 * Measures the way of entries through the ranges of a node, and logs slow ones.
 *
 * RT1. Measured are entries, not commands: the commands of a loop turn share one, so under load a measurement costs
 *      little per command. Nothing is allocated.
 * RT2. Slow entries come in crowds, so at most one line is logged in a minute (`RareLog`).
 */
import { type Clock, type Histogram, type Logger, type Metrics, RareLog } from '@remora/base';

export interface RangeTimesDeps {
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly logger: Logger;
  /** An entry that takes this long is logged; 0: none is. */
  readonly slowMs: number;
}

/** An entry of this leader that was slow. */
export interface SlowEntry {
  readonly rangeId: number;
  readonly index: number;
  readonly commands: number;
  /** The tag of its first command's request id (`requestTag`), also in the gateway's line about the command. */
  readonly request: string;
  readonly commitMs: number;
}

export class RangeTimes {
  readonly #clock: Clock;
  readonly #commits: Histogram;
  readonly #applies: Histogram;
  readonly #revisions: Histogram;
  readonly #slowMs: number;
  readonly #log: RareLog;

  constructor({ metrics, clock, logger, slowMs }: RangeTimesDeps) {
    this.#clock = clock;
    this.#slowMs = slowMs === 0 ? Number.POSITIVE_INFINITY : slowMs;
    this.#log = new RareLog(clock, logger);
    this.#commits = metrics.histogram({
      name: 'remora_commit_seconds',
      help: 'Time of an entry from its proposal by this leader until a quorum has it and it is applied.',
    });
    this.#applies = metrics.histogram({
      name: 'remora_apply_seconds',
      help: 'Time to apply an entry, answers to its commands included.',
    });
    this.#revisions = metrics.histogram({
      name: 'remora_revision_wait_seconds',
      help: 'Time that commands of a range waited until the masters had numbered them.',
    });
  }

  now(): number {
    return this.#clock.monotonicMs();
  }

  /** Whether the entry was slow: then the caller calls `slow`. */
  committed(commitMs: number): boolean {
    this.#commits.observe(commitMs / 1_000);
    return commitMs >= this.#slowMs;
  }

  applied(applyMs: number): void {
    this.#applies.observe(applyMs / 1_000);
  }

  gotRevisions(waitedMs: number): void {
    this.#revisions.observe(waitedMs / 1_000);
  }

  slow({ commitMs, ...entry }: SlowEntry): void {
    this.#log.warn('commit', { commitMs: Math.round(commitMs), ...entry }, 'an entry was slow to commit');
  }
}
