import type { Bytes, Clock } from '@remora/base';
import { type RangeDescriptor, type RpcDialer, rangeAwaitLeader } from '@remora/protocol';
import type { RouteLookupStats } from './route-lookup-stats.ts';
import type { Routes } from './routes.ts';

/** Pause before a replica is asked again that does not lead, or could not be reached. */
const ROUND_MS = 25;
/**
 * How long a replica keeps a question until it leads. It takes that much longer to notice a node that failed silently.
 */
const WAIT_MS = 250;
const TIMEOUT_MS = 500;

/** A caller that waits for the leader of the range that has this key. */
interface Waiter {
  readonly key: Bytes;
  readonly found: () => void;
}

interface Search {
  range: RangeDescriptor;
  readonly waiting: Set<Waiter>;
  /** Nodes with a question that they have not answered yet. */
  readonly asked: Set<number>;
}

/**
 * Looks for the leaders of ranges, once for all requests that wait for one.
 *
 * LS1. Only a replica that says "I lead" is believed: followers may still name a leader that has failed.
 * LS2. While a caller waits, each replica has at most one question in flight, which it answers when it leads; it gets
 *      the next question soon after its answer. The range may have other members by now: the search asks the replicas
 *      that the routes know, and any node that a replica names as leader.
 * LS3. A range that was merged away never has a leader again. A caller stops waiting as soon as its key is known to be
 *      in another range.
 */
export class LeaderSearch {
  readonly #dialer: RpcDialer;
  readonly #routes: Routes;
  readonly #clock: Clock;
  readonly #stats: Pick<RouteLookupStats, 'leaders'>;
  readonly #searches = new Map<number, Search>();

  constructor(deps: {
    readonly dialer: RpcDialer;
    readonly routes: Routes;
    readonly clock: Clock;
    readonly stats: Pick<RouteLookupStats, 'leaders'>;
  }) {
    this.#stats = deps.stats;
    this.#dialer = deps.dialer;
    this.#routes = deps.routes;
    this.#clock = deps.clock;
  }

  /**
   * Calls `found` once, when the leader of the range is known or the key is known to be in another range. Returns a
   * function that stops waiting.
   */
  wait(range: RangeDescriptor, key: Bytes, found: () => void): () => void {
    let search = this.#searches.get(range.rangeId);
    if (search === undefined) {
      search = { range, waiting: new Set(), asked: new Set() };
      this.#searches.set(range.rangeId, search);
      this.#stats.leaders++;
      // In the next turn, so that `found` is never called before `wait` has returned.
      const begun = search;
      this.#clock.setImmediate(() => this.#round(begun));
    }
    search.range = range;
    const { waiting } = search;
    const waiter = { key, found };
    waiting.add(waiter);
    return () => {
      waiting.delete(waiter);
    };
  }

  #round(search: Search): void {
    const { rangeId } = search.range;
    if (this.#searches.get(rangeId) !== search) return;
    const [first] = search.waiting;
    if (first === undefined) {
      this.#searches.delete(rangeId);
      return;
    }
    const now = this.#routes.find(first.key);
    if (now?.rangeId === rangeId) search.range = now;
    for (const { nodeId } of search.range.replicas) if (!search.asked.has(nodeId)) this.#ask(search, nodeId);
    this.#clock.setTimer(ROUND_MS, () => this.#round(search));
  }

  #ask(search: Search, nodeId: number): void {
    const { rangeId } = search.range;
    search.asked.add(nodeId);
    const request = { rangeId, waitMs: WAIT_MS };
    this.#dialer.channel(nodeId).call(rangeAwaitLeader, request, { timeoutMs: TIMEOUT_MS }, (error, info) => {
      search.asked.delete(nodeId);
      if (error !== undefined) this.#routes.learnMoved(error);
      this.#releaseRerouted(search);
      if (info === undefined) return;
      if (info.leaderNode !== nodeId) return this.#askNewcomer(search, info.leaderNode);
      this.#routes.learnInfo(info, nodeId);
      if (this.#routes.leader(rangeId) !== 0) this.#found(search);
    });
  }

  /** LS2. Known members are asked in each round anyway. */
  #askNewcomer(search: Search, nodeId: number): void {
    const { range, waiting, asked } = search;
    if (nodeId === 0 || waiting.size === 0 || asked.has(nodeId)) return;
    if (!range.replicas.some((replica) => replica.nodeId === nodeId)) this.#ask(search, nodeId);
  }

  /** LS3. */
  #releaseRerouted({ range, waiting }: Search): void {
    for (const waiter of [...waiting]) {
      const now = this.#routes.find(waiter.key);
      if (now === undefined || now.rangeId === range.rangeId) continue;
      waiting.delete(waiter);
      waiter.found();
    }
  }

  #found(search: Search): void {
    const { rangeId } = search.range;
    if (this.#searches.get(rangeId) !== search) return;
    this.#searches.delete(rangeId);
    const found = [...search.waiting];
    search.waiting.clear(); // later answers have no waiter
    for (const waiter of found) waiter.found();
  }
}
