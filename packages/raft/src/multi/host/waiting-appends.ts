/**
 * The groups of which entries wait for some followers: looked at again and again until none do
 * (core/thrifty-replication.ts T3).
 */
import type { Clock, Timer } from '@remora/base';

/** A group, as seen here. */
export interface WaitingGroup {
  /** Looks whether entries are to wait any longer. False if none do. */
  reviewAppends(): boolean;
}

export interface WaitingAppendsOptions {
  readonly clock: Clock;
  readonly intervalMs: number;
  /** Runs `work` unless the host has stopped, and stops it when that fails. */
  readonly guard: (work: () => void) => void;
}

export class WaitingAppends {
  readonly #options: WaitingAppendsOptions;
  readonly #groups = new Set<WaitingGroup>();
  #timer: Timer | undefined;

  constructor(options: WaitingAppendsOptions) {
    this.#options = options;
  }

  /** Entries of the group wait, perhaps for a while already. */
  add(group: WaitingGroup): void {
    this.#groups.add(group);
    if (this.#timer === undefined) this.#arm();
  }

  stop(): void {
    this.#timer?.cancel();
    this.#groups.clear();
  }

  #arm(): void {
    const { clock, intervalMs, guard } = this.#options;
    this.#timer = clock.setTimer(intervalMs, () => guard(() => this.#review()));
  }

  #review(): void {
    this.#timer = undefined;
    for (const group of this.#groups) if (!group.reviewAppends()) this.#groups.delete(group);
    if (this.#groups.size > 0) this.#arm();
  }
}
