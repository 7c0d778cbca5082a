/**
 * Detects a log that hangs. A disk may, for minutes, neither complete a write nor fail it. Heartbeats need no disk, so
 * the node would keep leading, and would refuse proposals once its queue is full.
 *
 * L1. The log hangs if a write is in progress and nothing has become durable for `stallTicks`. Ticks are used because a
 *     process that was stopped has not observed its log hang.
 * L2. While the log hangs, leaderships are transferred, `handOversMax` at a time. They do not return, because a vote
 *     for oneself must be durable.
 */
import type { Logger } from '@remora/base';
import type { Group } from '../host-api.ts';

/** A group, as the log watch uses it. */
export interface LedGroup extends Pick<Group, 'status' | 'transferLeader' | 'transferring'> {
  readonly leads: boolean;
}

export interface LogWatchOptions {
  readonly logger: Pick<Logger, 'error' | 'info'>;
  readonly stallTicks: number;
  /** The interval of transfers while the log hangs. */
  readonly intervalTicks: number;
  readonly handOversMax: number;
}

export class LogWatch {
  readonly #options: LogWatchOptions;
  /** Ticks since something last became durable, or the first write began. */
  #ticks = 0;
  #handedOverAt = 0;

  constructor(options: LogWatchOptions) {
    this.#options = options;
  }

  /** L1. */
  get hangs(): boolean {
    return this.#ticks >= this.#options.stallTicks;
  }

  /** Something became durable. */
  moved(): void {
    if (this.#handedOverAt > 0)
      this.#options.logger.info({ ticks: this.#ticks }, 'the write-ahead log can be written again');
    this.#ticks = 0;
    this.#handedOverAt = 0;
  }

  /** `count` ticks have passed. */
  ticked(count: number, inFlight: boolean, groups: Iterable<LedGroup>): void {
    if (!inFlight) {
      this.#ticks = 0;
      return;
    }
    const { logger, stallTicks, intervalTicks, handOversMax } = this.#options;
    this.#ticks += count;
    if (this.#ticks < stallTicks || this.#ticks - this.#handedOverAt < intervalTicks) return;
    if (this.#handedOverAt === 0) {
      logger.error(
        { ticks: this.#ticks },
        'the write-ahead log hangs: its disk does not respond; leaderships are transferred to other nodes',
      );
    }
    this.#handedOverAt = this.#ticks;
    let left = handOversMax;
    for (const group of groups) if (left > 0 && group.leads && handOver(group)) left--;
  }
}

/** Transfers to the follower with most of the log. Returns false if none can take it now, or one is about to. */
function handOver(group: LedGroup): boolean {
  if (group.transferring) return false;
  const { conf, progress } = group.status();
  const able = progress.filter(
    ({ replica, state, heardLately }) => conf.voters.includes(replica) && state === 'replicate' && heardLately,
  );
  const best = able.toSorted((a, b) => b.match - a.match)[0];
  return best !== undefined && group.transferLeader(best.replica) === undefined;
}
