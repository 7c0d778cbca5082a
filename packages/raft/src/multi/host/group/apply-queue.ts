/**
 * Passes one group's committed entries to its state machine, in order and one call at a time.
 *
 * A1. Calls of the state machine are serial: while `apply` waits for cold data, or while a snapshot is being installed
 *     (`pause`), no other call is made.
 * A2. A change of role is reported before entries that were handed out after it are applied. Changes that accumulate
 *     while the state machine is busy are reported as one, the latest.
 * A3. A `conf` entry is passed alone. The resulting membership is computed once everything before it is applied,
 *     equally on every replica; the state machine gets the entry together with that membership.
 * A4. A failed call is the last one. No caller waits any longer, and no snapshot is taken of the state that it left.
 * A5. A call takes at most `entries` entries, and no further one once it has `bytes` bytes. So it holds the loop for
 *     little longer than its largest entry, and a turn examines its time budget between calls. Replicas may slice
 *     differently: the result does not depend on it.
 */
import { assert } from '@remora/base';
import type { ConfState, Entry, LogPosition, Role } from '../../../core/types.ts';
import type { StateMachine } from '../../ports.ts';

export interface RoleChange {
  readonly role: Role;
  readonly term: number;
  readonly leader: number;
}

export interface ApplyOwner {
  /** The membership once `slice` is applied. */
  confAfter(slice: readonly Entry[]): ConfState;
  /** Entries up to the last of `slice` are applied, and the membership is `conf`. */
  applied(slice: readonly Entry[], conf: ConfState): void;
  /** The state machine completed a call that took longer: there may be more to do. */
  resumed(): void;
  failed(error: unknown): void;
}

/** The limits of one call (A5). */
export interface SliceLimits {
  readonly entries: number;
  readonly bytes: number;
}

export class ApplyQueue {
  readonly #stateMachine: StateMachine;
  readonly #owner: ApplyOwner;
  readonly #limits: SliceLimits;
  #queue: Entry[] = [];
  #head = 0;
  #roleChange: RoleChange | undefined;
  #told: RoleChange | undefined;
  #busy: Promise<void> | undefined;
  #paused = false;
  #closed = false;
  #failed = false;

  constructor(stateMachine: StateMachine, owner: ApplyOwner, limits: SliceLimits) {
    this.#stateMachine = stateMachine;
    this.#owner = owner;
    this.#limits = limits;
  }

  /** The last change of role that the state machine received. */
  get told(): RoleChange | undefined {
    return this.#told;
  }

  push(entries: readonly Entry[]): void {
    if (this.#head === this.#queue.length) {
      this.#queue = entries.slice();
      this.#head = 0;
    } else {
      for (const entry of entries) this.#queue.push(entry);
    }
  }

  roleChanged(change: RoleChange): void {
    this.#roleChange = change;
  }

  /** Applies one slice. Returns true if there is more that can continue at once. */
  step(): boolean {
    if (this.#busy !== undefined || this.#paused || this.#closed || this.#failed) return false;
    this.#tellRole();
    const slice = this.#takeSlice();
    if (slice.length === 0) return false;
    const conf = this.#owner.confAfter(slice);
    const waiting = this.#stateMachine.apply(slice, conf);
    if (waiting === undefined) {
      this.#owner.applied(slice, conf);
      return this.#head < this.#queue.length;
    }
    this.#busy = waiting.then(
      () => this.#resume(slice, conf),
      (error: unknown) => this.#fail(error),
    );
    return false;
  }

  /** Prevents further calls; resolves when none is in progress (A1). */
  async pause(): Promise<void> {
    this.#paused = true;
    await this.#busy;
  }

  /** Continues behind `position`, the state machine's position now. */
  unpause(position: LogPosition): void {
    this.#paused = false;
    while (this.#head < this.#queue.length && (this.#queue[this.#head]?.index ?? 0) <= position.index) this.#head++;
  }

  /** Resolves when no call is in progress. */
  async idle(): Promise<void> {
    while (this.#busy !== undefined) await this.#busy;
  }

  /**
   * Runs `work` while no call is in progress, at once if possible: after a wait for `idle` a turn might have begun the
   * next call already.
   */
  async whenIdle<T>(work: () => T): Promise<T> {
    while (this.#busy !== undefined) await this.#busy;
    assert(!this.#failed, 'A4: the state machine has failed');
    return work();
  }

  close(): Promise<void> {
    this.#closed = true;
    return this.idle();
  }

  #resume(slice: readonly Entry[], conf: ConfState): void {
    this.#busy = undefined;
    if (this.#closed) return;
    this.#owner.applied(slice, conf);
    this.#owner.resumed();
  }

  /** A4. */
  #fail(error: unknown): void {
    this.#busy = undefined;
    this.#failed = true;
    this.#owner.failed(error);
  }

  #tellRole(): void {
    const change = this.#roleChange;
    if (change === undefined) return;
    this.#roleChange = undefined;
    this.#told = change;
    this.#stateMachine.roleChanged(change);
  }

  #takeSlice(): readonly Entry[] {
    const limit = Math.min(this.#queue.length, this.#head + this.#limits.entries);
    let end = this.#head;
    for (let bytes = 0; end < limit && bytes < this.#limits.bytes; end++) {
      const entry = this.#queue[end];
      if (entry === undefined || entry.type === 'conf') break;
      bytes += entry.data.length;
    }
    if (end === this.#head && end < limit) end++; // A3
    const slice = this.#head === 0 && end === this.#queue.length ? this.#queue : this.#queue.slice(this.#head, end);
    this.#head = end;
    // Not only once it is empty: a group that applies more slowly than it commits never empties it.
    if (2 * end >= this.#queue.length) {
      this.#queue = this.#queue.slice(end);
      this.#head = 0;
    }
    return slice;
  }
}
