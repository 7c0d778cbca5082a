/**
 * The limits of a leader for the sessions and locks in its range, and for the data attached to them.
 *
 * LL1. Excess is refused before it is proposed, and nothing is changed: limits need not be the same on all nodes, and
 *      apply does not know them (docs/decisions/0034). Commands in progress at the same time may exceed a limit
 *      slightly.
 * LL2. A holder or waiter of a lock may ask again, enter again, and upgrade.
 * LL3. The locks of a session are counted only when those admitted since the last count may have brought it to the
 *      limit, and not for each of the last ones: a tenth more may be admitted, where that is one lock or more. Counting
 *      costs as much as there are locks. So a full session with many locks is refused several times before its locks
 *      are counted again.
 */
import { LazyMap } from '@remora/base';
import { DATA_BYTES_MAX, type LockCommand, type LockView, ownerStatus, WAITERS_MAX, waitersOf } from '@remora/lock';
import type { Command } from '@remora/protocol';
import type { RangeState } from '../../state/range-state.ts';
import type { OverLimit } from '../requests/limits.ts';

export interface LockLimitOptions {
  /** Sessions whose home is one range, including leases of etcd's clients. */
  readonly sessionsMax: number;
  /** Locks in one range that one session holds or waits for. */
  readonly sessionLocksMax: number;
  /** Waiters for one lock; at most `WAITERS_MAX`, which apply enforces. */
  readonly waitersMax: number;
  /** Data of one hold; at most `DATA_BYTES_MAX`, which gateways enforce. */
  readonly dataBytesMax: number;
}

export const LOCK_LIMITS: LockLimitOptions = {
  sessionsMax: 200_000,
  sessionLocksMax: 200_000,
  waitersMax: WAITERS_MAX,
  dataBytesMax: DATA_BYTES_MAX,
};

type Acquire = Extract<LockCommand, { readonly type: 'acquire' }>;

/** Sessions whose locks were counted; above this number all are counted again. */
const COUNTED_MAX = 100_000;
/** Locks that are counted per refused acquire. */
const COUNTED_PER_REFUSAL = 1_000;

export class LockLimits {
  readonly #options: LockLimitOptions;
  readonly #state: RangeState;
  readonly #view: Pick<LockView, 'get'>;
  /**
   * By lease: acquires that may be admitted before its locks are counted again; below 0: acquires that are refused
   * before that (LL3).
   */
  readonly #left = new LazyMap<bigint, number>();
  #term = 0;

  /** `view` reads the newest state. */
  constructor(options: LockLimitOptions, state: RangeState, view: Pick<LockView, 'get'>) {
    this.#options = options;
    this.#state = state;
    this.#view = view;
  }

  /** `term`: that of the leader, which does not know what an earlier one admitted. */
  refusal(command: Command, term: number): OverLimit | undefined {
    if (command.type === 'leaseGrant') {
      if (this.#state.leases.size < this.#options.sessionsMax) return undefined;
      const message = `the range has ${this.#options.sessionsMax} sessions, which is its limit (--sessions-max)`;
      return { limit: 'sessions', code: 'RESOURCE_EXHAUSTED', message };
    }
    if (command.type !== 'lock') return undefined;
    const tooLarge = this.#ofData(command.command);
    if (tooLarge !== undefined || command.command.type !== 'acquire') return tooLarge;
    return this.#ofSession(command.command, term) ?? this.#ofQueue(command.command);
  }

  #ofData(command: LockCommand): OverLimit | undefined {
    if (command.type !== 'acquire' && command.type !== 'setData') return undefined;
    const { dataBytesMax } = this.#options;
    if (command.data.length <= dataBytesMax) return undefined;
    if (command.type === 'acquire' && this.#isKnown(command)) return undefined;
    const message = `the data of a lock has at most ${dataBytesMax} bytes (--lock-data-bytes-max)`;
    return { limit: 'data', code: 'INVALID_ARGUMENT', message };
  }

  #ofSession(acquire: Acquire, term: number): OverLimit | undefined {
    const { lease } = acquire.owner.session;
    if (term !== this.#term || this.#left.size > COUNTED_MAX) this.#left.clear();
    this.#term = term;
    const left = this.#left.get(lease) ?? 0;
    if (left > 0) {
      this.#left.set(lease, left - 1);
      return undefined;
    }
    const { sessionLocksMax } = this.#options;
    const room = left < 0 ? 0 : sessionLocksMax - this.#locksOf(lease);
    if (left < 0) this.#left.set(lease, left + 1);
    else if (room > 0) this.#left.set(lease, Math.max(room, Math.floor(sessionLocksMax / 10)) - 1);
    else this.#left.set(lease, -Math.floor(sessionLocksMax / COUNTED_PER_REFUSAL));
    if (room > 0 || this.#isKnown(acquire)) return undefined;
    const message = `the session has ${sessionLocksMax} locks in this range, which is the limit (--session-locks-max)`;
    return { limit: 'session_locks', code: 'RESOURCE_EXHAUSTED', message };
  }

  #locksOf(lease: bigint): number {
    const { leaseOwnership, bounds } = this.#state;
    return leaseOwnership.locksOf(lease, bounds.routed, this.#options.sessionLocksMax).length;
  }

  /** Apply enforces the absolute maximum. */
  #ofQueue(acquire: Acquire): OverLimit | undefined {
    const { waitersMax } = this.#options;
    if (!acquire.wait || waitersMax >= WAITERS_MAX) return undefined;
    if (waitersOf(this.#view, acquire.lock) < waitersMax || this.#isKnown(acquire)) return undefined;
    const message = `${waitersMax} wait for the lock, which is the limit (--lock-waiters-max)`;
    return { limit: 'waiters', code: 'RESOURCE_EXHAUSTED', message };
  }

  /** LL2. */
  #isKnown({ lock, owner }: Acquire): boolean {
    const view = { get: (key: Uint8Array) => this.#view.get(key), sessionAlive: () => true };
    return ownerStatus(view, lock, owner).type !== 'refused';
  }
}
