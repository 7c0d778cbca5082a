import { type Bytes, type Clock, TransientMap } from '@remora/base';
import type { RangeDescriptor } from '@remora/protocol';
import type { LeaderSearch } from '../routes/leader-search.ts';
import type { Routes } from '../routes/routes.ts';

/** A request in flight to the node that leads the range of its key, as far as this gateway knows. */
export interface Awaited {
  readonly range: RangeDescriptor;
  readonly key: Bytes;
  readonly node: number;
  /** Called at most once: another node leads the range, or another range has the key. */
  moved(): void;
}

/** A request that has taken long. */
interface Slow {
  /** When the next search for its leader starts, and the pause until the one after that. */
  dueMs: number;
  pauseMs: number;
  stopSearch: (() => void) | undefined;
}

const CHECK_MS = 50;
/** A request is slow after this many checks: long compared to an answer, short compared to an election. */
const SLOW_CHECKS = 3;
const SLOW_MS = SLOW_CHECKS * CHECK_MS;

/**
 * Finds requests that their leader takes unusually long to answer. A stopped process or a machine that has failed says
 * nothing, and another node may lead by now. So the range's replicas are asked, and a request whose range has another
 * leader is sent to that one. The request stays where it is while its leader confirms that it leads: sending it again
 * would only make a slow leader slower.
 *
 * Every request is watched here, and few are slow. Ids count up, so the next id at the time of a check tells for all
 * smaller ids how long their requests have been in flight at least.
 */
export class SlowAnswers {
  readonly #clock: Clock;
  readonly #routes: Routes;
  readonly #search: LeaderSearch;
  readonly #watched = new TransientMap<Awaited>();
  readonly #slow = new Map<number, Slow>();
  /** The next id at the time of each of the last checks, the earliest first. */
  readonly #next: number[] = new Array<number>(SLOW_CHECKS).fill(0);
  #nextId = 1;
  #armed = false;

  constructor(deps: { readonly clock: Clock; readonly routes: Routes; readonly search: LeaderSearch }) {
    this.#clock = deps.clock;
    this.#routes = deps.routes;
    this.#search = deps.search;
  }

  /** Returns an id above 0. Pass it to `forget` when the request is answered or given up. */
  watch(awaited: Awaited): number {
    const id = this.#nextId++;
    this.#watched.add(id, awaited);
    if (!this.#armed) this.#arm();
    return id;
  }

  /** Returns whether it took unusually long: that is known of every request, without a reading of the clock. */
  forget(id: number): boolean {
    this.#watched.delete(id);
    if (this.#slow.size === 0) return false;
    this.#slow.get(id)?.stopSearch?.();
    return this.#slow.delete(id);
  }

  #arm(): void {
    this.#armed = true;
    this.#clock.setTimer(CHECK_MS, () => {
      this.#armed = false;
      this.#check(this.#clock.monotonicMs());
      if (this.#watched.size > 0) this.#arm();
    });
  }

  #check(nowMs: number): void {
    const slowBefore = this.#next.shift() ?? 0;
    this.#next.push(this.#nextId);
    this.#watched.forEach((awaited, id) => {
      if (id >= slowBefore) return;
      const slow = this.#slow.get(id) ?? { dueMs: nowMs, pauseMs: SLOW_MS, stopSearch: undefined };
      if (slow.dueMs > nowMs || slow.stopSearch !== undefined) return;
      this.#slow.set(id, slow);
      slow.stopSearch = this.#search.wait(awaited.range, awaited.key, () => this.#found(id, slow));
    });
  }

  #found(id: number, slow: Slow): void {
    const awaited = this.#watched.get(id);
    if (awaited === undefined) return;
    slow.stopSearch = undefined;
    const { range, key, node } = awaited;
    const isSame = this.#routes.find(key)?.rangeId === range.rangeId && this.#routes.leader(range.rangeId) === node;
    if (!isSame) {
      this.#watched.delete(id);
      this.#slow.delete(id);
      return awaited.moved();
    }
    slow.pauseMs *= 2;
    slow.dueMs = this.#clock.monotonicMs() + slow.pauseMs;
  }
}
