import { type Clock, Rotation } from '@remora/base';
import type { RangeReplica } from '../range/range-replica.ts';
import { type ActiveRanges, looksFor } from './active-ranges.ts';
import type { ReplicaTable } from './replica-table.ts';
import { TimeCarriers } from './time-carrying.ts';

export interface RangeRoundsDeps {
  readonly clock: Clock;
  readonly replicas: Pick<ReplicaTable, 'all' | 'get' | 'has' | 'size'>;
  readonly active: ActiveRanges;
  readonly timeCarryMs: number;
}

/** When the latest time of a range leaps ahead by more than this, all ranges are looked at. */
const LEAP_MS = 500;

/**
 * The periodic work for the ranges of a node.
 *
 * HK1. A round visits the ranges that something happened to and a share of the others (active-ranges.ts AC1, AC3).
 * HK2. The latest time of any range here counts on while it is not looked at, like the time of the range that had it.
 *      When that time leaps ahead, the round visits all ranges: those that lag catch up within about a second
 *      (range-clock.ts).
 */
export class RangeRounds {
  readonly #deps: RangeRoundsDeps;
  readonly #marks: Set<number>;
  readonly #rotation: Rotation<RangeReplica>;
  readonly #carriers = new TimeCarriers<RangeReplica>(isLed);
  #latestMs = 0;
  /** The latest time less the monotonic time, of ranges that were served when they were visited. */
  #aheadMs = Number.NEGATIVE_INFINITY;
  /** The same when all ranges were visited last. */
  #sweptMs = Number.NEGATIVE_INFINITY;

  constructor(deps: RangeRoundsDeps) {
    this.#deps = deps;
    this.#marks = deps.active.reader();
    this.#rotation = new Rotation(() => deps.replicas.all());
  }

  /** The latest time of any range here, as of the last round. */
  get latestTimeMs(): number {
    return this.#latestMs;
  }

  /** Called about every second. */
  round(): void {
    const { replicas, timeCarryMs } = this.#deps;
    const visited = this.#noteTimes(this.#due());
    for (const replica of visited) {
      replica.housekeep(this.#latestMs);
      if (replica.resting) this.#marks.delete(replica.rangeId);
      else this.#marks.add(replica.rangeId);
    }
    for (const replica of this.#carriers.due(visited.filter(isLed), timeCarryMs)) replica.writeTime();
    for (const rangeId of this.#marks) if (!replicas.has(rangeId)) this.#marks.delete(rangeId);
  }

  /** The ranges that something happened to, or with few ranges all. */
  *active(): Generator<RangeReplica> {
    const { replicas } = this.#deps;
    if (looksFor(replicas.size) === 1) return yield* replicas.all();
    for (const rangeId of this.#marks) {
      const replica = replicas.get(rangeId)?.replica;
      if (replica !== undefined) yield replica;
    }
  }

  /** HK1. */
  #due(): readonly RangeReplica[] {
    const { size } = this.#deps.replicas;
    const due = [...this.active()];
    const looks = looksFor(size);
    if (looks === 1) return due;
    for (const replica of this.#rotation.next(Math.ceil(size / looks))) {
      if (!this.#marks.has(replica.rangeId)) due.push(replica);
    }
    return due;
  }

  /** HK2. Returns the ranges to visit. */
  #noteTimes(due: readonly RangeReplica[]): readonly RangeReplica[] {
    const { clock, replicas } = this.#deps;
    const nowMs = clock.monotonicMs();
    for (const replica of due) {
      const { timeMs } = replica;
      this.#latestMs = Math.max(this.#latestMs, timeMs);
      if (replica.serving) this.#aheadMs = Math.max(this.#aheadMs, timeMs - nowMs);
    }
    if (due.length >= replicas.size) {
      this.#sweptMs = this.#latestMs - nowMs;
      return due;
    }
    this.#latestMs = Math.max(this.#latestMs, Math.floor(nowMs + this.#aheadMs));
    if (this.#latestMs - nowMs - this.#sweptMs <= LEAP_MS) return due;
    this.#sweptMs = this.#latestMs - nowMs;
    return [...replicas.all()];
  }
}

/** Whether the range is led and served here. */
function isLed({ context }: RangeReplica): boolean {
  return context.servingTerm !== 0;
}
