import { type Bytes, type Clock, TransientMap } from '@remora/base';
import type { RangeDescriptor } from '@remora/protocol';
import type { LeaderSearch } from './leader-search.ts';
import type { Routes } from './routes.ts';

/** A request that is under way to the node that is thought to lead the range of its key. */
export interface Awaited {
  readonly range: RangeDescriptor;
  readonly key: Bytes;
  readonly node: number;
  /** Called once: another node leads the range, or another range has the key. */
  readonly onMoved: () => void;
}

interface Watched extends Awaited {
  /** When it is asked about next, and how long after that again. */
  dueMs: number;
  pauseMs: number;
  stopSearch: (() => void) | undefined;
}

/** Long beside what an answer takes, short beside an election. */
const SLOW_MS = 150;
const CHECK_MS = 50;

/**
 * Requests that their leader does not answer for longer than usual. A process that stands still, or a machine that is gone
 * without a word, says nothing, and another may lead by now: so the range's replicas are asked meanwhile, and whoever finds
 * another leader asks that one instead. The request stays where it is as long as its leader says that it is one: to ask a
 * slow leader again would make it slower.
 */
export class SlowAnswers {
  readonly #clock: Clock;
  readonly #routes: Routes;
  readonly #search: LeaderSearch;
  readonly #watched = new TransientMap<Watched>();
  #nextId = 1;
  #armed = false;

  constructor(deps: { readonly clock: Clock; readonly routes: Routes; readonly search: LeaderSearch }) {
    this.#clock = deps.clock;
    this.#routes = deps.routes;
    this.#search = deps.search;
  }

  /** Gives what is to be called when the request is answered, or given up. */
  watch(awaited: Awaited): () => void {
    const id = this.#nextId++;
    const dueMs = this.#clock.monotonicMs() + SLOW_MS;
    const watched: Watched = { ...awaited, dueMs, pauseMs: SLOW_MS, stopSearch: undefined };
    this.#watched.add(id, watched);
    this.#arm();
    return () => {
      this.#watched.delete(id);
      watched.stopSearch?.();
      watched.stopSearch = undefined;
    };
  }

  #arm(): void {
    if (this.#armed) return;
    this.#armed = true;
    this.#clock.setTimer(CHECK_MS, () => {
      this.#armed = false;
      this.#check(this.#clock.monotonicMs());
      if (this.#watched.size > 0) this.#arm();
    });
  }

  #check(nowMs: number): void {
    this.#watched.forEach((watched, id) => {
      if (watched.dueMs > nowMs || watched.stopSearch !== undefined) return;
      watched.stopSearch = this.#search.wait(watched.range, watched.key, () => this.#found(id));
    });
  }

  #found(id: number): void {
    const watched = this.#watched.get(id);
    if (watched === undefined) return;
    watched.stopSearch = undefined;
    const { range, key, node } = watched;
    const isSame = this.#routes.find(key)?.rangeId === range.rangeId && this.#routes.leader(range.rangeId) === node;
    if (!isSame) {
      this.#watched.delete(id);
      return watched.onMoved();
    }
    watched.pauseMs *= 2;
    watched.dueMs = this.#clock.monotonicMs() + watched.pauseMs;
  }
}
