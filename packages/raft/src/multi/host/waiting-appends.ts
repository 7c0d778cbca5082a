/**
 * Groups whose entries are held back from some followers: reviewed repeatedly until none are
 * (core/thrifty-replication.ts T3).
 */
import type { Clock, Timer } from '@remora/base';

/** A group, as this file uses it. */
export interface WaitingGroup {
  /** Decides whether entries are held back any longer. Returns false if none are. */
  reviewAppends(): boolean;
}

export interface WaitingAppendsOptions {
  readonly clock: Clock;
  readonly intervalMs: number;
  /** Runs `work` unless the host has stopped, and stops the host if it fails. */
  readonly guard: (work: () => void) => void;
}

export class WaitingAppends {
  readonly #options: WaitingAppendsOptions;
  readonly #groups = new Set<WaitingGroup>();
  #timer: Timer | undefined;

  constructor(options: WaitingAppendsOptions) {
    this.#options = options;
  }

  /** Entries of the group are held back, perhaps for a while already. */
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
