/**
 * The loop of a host: one turn processes the groups that have something to do.
 *
 * H1. One turn collects one frame per node and one log append from the groups, then lets them apply. Frames leave
 *     before the append, so followers work in parallel with this node's fsync (dissertation §10.2.1). The core holds
 *     back messages that must not leave before the fsync, until `persisted`.
 * H3. Every entry passed to a state machine was passed to the log before, in this turn or an earlier one.
 * H4. A turn is bounded by time: collecting ends after half of its budget, and applying when all of it is spent, each
 *     after at least one group. Groups that were not reached go first in the next turn, and groups that had their share
 *     go last, so none starves. Timers, ticks, heartbeats and input run between turns.
 * H7. A leader applies within the turn, because clients wait for the result. A follower applies once the writes of its
 *     turn are durable and their acknowledgement is sent, because nobody waits for its apply, but its leader waits for
 *     the acknowledgement. Writes of later turns do not delay it, so it makes progress however many follow.
 */
import { assert, type Clock, loopSection } from '@remora/base';
import { Outbox } from './outbox.ts';

/** A group, as a turn sees it. */
export interface TurnMember {
  /** Managed by the loop: whether it waits for a turn. */
  dirty: boolean;
  /** The group is closed: no work is left for it. */
  readonly closed: boolean;
  /** Clients wait for what it applies (H7). */
  readonly leads: boolean;
  /** Collects its messages and log records. */
  collect(outbox: Outbox): void;
  /** Applies one slice of the committed entries. Returns true if there is more that can continue at once. */
  apply(): boolean;
}

export interface TurnLoopOptions {
  readonly clock: Clock;
  readonly turnBudgetMs: number;
  /** Runs `work` unless the host has stopped, and stops the host if it fails. */
  readonly guard: (work: () => void) => void;
  /** Sends and writes what a turn has collected. Calls `durable` once that is on disk; at once if there was nothing. */
  readonly flush: (outbox: Outbox, durable: () => void) => void;
}

export class TurnLoop {
  readonly #options: TurnLoopOptions;
  #waiting: TurnMember[] = [];
  #scheduled = false;
  #started = false;
  #turning = false;
  /** Followers that may have entries to apply (H7). */
  readonly #followers = new Set<TurnMember>();

  constructor(options: TurnLoopOptions) {
    this.#options = options;
  }

  start(): void {
    this.#started = true;
    this.#schedule();
  }

  /** The group has something for the next turn. */
  markDirty(member: TurnMember): void {
    if (member.dirty) return;
    member.dirty = true;
    this.#waiting.push(member);
    this.#schedule();
  }

  /**
   * Runs a turn now, for groups marked by a callback that has the loop to itself; otherwise it runs at the usual time.
   */
  hurry(): void {
    if (this.#started && !this.#turning) this.#turn();
  }

  #schedule(): void {
    if (this.#scheduled || !this.#started || this.#waiting.length === 0) return;
    this.#scheduled = true;
    this.#options.clock.setImmediate(() => {
      this.#scheduled = false;
      this.#options.guard(() => loopSection('raftTurn', () => this.#turn()));
    });
  }

  #turn(): void {
    if (this.#waiting.length === 0) return;
    assert(!this.#turning, 'a turn does not begin within another');
    this.#turning = true;
    const { clock, turnBudgetMs, flush } = this.#options;
    const startedMs = clock.monotonicMs();
    const outbox = new Outbox();
    const members = this.#collect(outbox, startedMs + turnBudgetMs / 2);
    const followers = members.filter(({ leads }) => !leads);
    flush(outbox, () => this.#applyLater(followers)); // H7
    this.#apply(
      members.filter(({ leads }) => leads),
      startedMs + turnBudgetMs,
    );
    this.#turning = false;
    this.#schedule();
  }

  /** H7. */
  #applyLater(members: readonly TurnMember[]): void {
    const { clock, turnBudgetMs, guard } = this.#options;
    const scheduled = this.#followers.size > 0;
    for (const member of members) this.#followers.add(member);
    if (scheduled || members.length === 0) return;
    clock.setImmediate(() =>
      guard(() => {
        const followers = [...this.#followers];
        this.#followers.clear();
        loopSection('raftApply', () => this.#apply(followers, clock.monotonicMs() + turnBudgetMs / 2));
      }),
    );
  }

  #collect(outbox: Outbox, deadlineMs: number): readonly TurnMember[] {
    const members = this.#waiting;
    this.#waiting = [];
    let reached = 0;
    for (const member of members) {
      reached++;
      member.dirty = false;
      if (!member.closed) member.collect(outbox);
      if (this.#options.clock.monotonicMs() >= deadlineMs) break;
    }
    if (reached === members.length) return members;
    this.#waiting = members.splice(reached).concat(this.#waiting); // H4
    return members;
  }

  /** Each group gets a slice in turn, until all are done or the time is over (H4). */
  #apply(members: readonly TurnMember[], deadlineMs: number): void {
    let round = members;
    while (round.length > 0) {
      const more: TurnMember[] = [];
      for (const [i, member] of round.entries()) {
        if (!member.closed && member.apply()) more.push(member);
        if (this.#options.clock.monotonicMs() < deadlineMs) continue;
        for (let rest = i + 1; rest < round.length; rest++) this.markDirty(round[rest] ?? member);
        for (const one of more) this.markDirty(one);
        return;
      }
      round = more;
    }
  }
}
