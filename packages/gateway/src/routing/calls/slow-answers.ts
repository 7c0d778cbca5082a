import { type Bytes, type Clock, TransientMap } from '@remora/base';
import type { RangeDescriptor } from '@remora/protocol';
import type { LeaderSearch } from '../routes/leader-search.ts';
import type { Routes } from '../routes/routes.ts';

/** A request that is under way to the node that is thought to lead the range of its key. */
export interface Awaited {
  readonly range: RangeDescriptor;
  readonly key: Bytes;
  readonly node: number;
  /** Called once: another node leads the range, or another range has the key. */
  moved(): void;
}

/** One that has taken long. */
interface Slow {
  /** When it is asked about next, and how long after that again. */
  dueMs: number;
  pauseMs: number;
  stopSearch: (() => void) | undefined;
}

const CHECK_MS = 50;
/** Long beside what an answer takes, short beside an election: after so many checks. */
const SLOW_CHECKS = 3;
const SLOW_MS = SLOW_CHECKS * CHECK_MS;

/**
 * Requests that their leader does not answer for longer than usual. A process that stands still, or a machine that is gone
 * without a word, says nothing, and another may lead by now: so the range's replicas are asked meanwhile, and whoever finds
 * another leader asks that one instead. The request stays where it is as long as its leader says that it is one: to ask a
 * slow leader again would make it slower.
 *
 * Every request passes here, and hardly any is slow: as ids count up, the next one at a check says of all before it how long
 * they have been under way at least.
 */
export class SlowAnswers {
  readonly #clock: Clock;
  readonly #routes: Routes;
  readonly #search: LeaderSearch;
  readonly #watched = new TransientMap<Awaited>();
  readonly #slow = new Map<number, Slow>();
  /** The next id as of the last checks, the earliest first. */
  readonly #next: number[] = new Array<number>(SLOW_CHECKS).fill(0);
  #nextId = 1;
  #armed = false;

  constructor(deps: { readonly clock: Clock; readonly routes: Routes; readonly search: LeaderSearch }) {
    this.#clock = deps.clock;
    this.#routes = deps.routes;
    this.#search = deps.search;
  }

  /** Gives an id, above 0, by which to `forget` it when it is answered or given up. */
  watch(awaited: Awaited): number {
    const id = this.#nextId++;
    this.#watched.add(id, awaited);
    if (!this.#armed) this.#arm();
    return id;
  }

  forget(id: number): void {
    this.#watched.delete(id);
    if (this.#slow.size === 0) return;
    this.#slow.get(id)?.stopSearch?.();
    this.#slow.delete(id);
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
