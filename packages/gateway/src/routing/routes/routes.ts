import type { Bytes, Clock, ServiceError, Span } from '@remora/base';
import {
  type ClusterView,
  currentRanges,
  type RangeDescriptor,
  type RangeInfo,
  type RangeReply,
} from '@remora/protocol';
import { type Route, RouteMap } from './route-map.ts';

/** How long an estimate of a range's time is used; after that, the next command asks for the time first. */
const TIME_FRESH_MS = 5_000;

interface Known {
  leaderNode: number;
  /** The term that named the leader; information of older terms is ignored. */
  term: number;
  timeMs: number;
  timeAtMs: number;
}

/**
 * What this gateway knows about ranges: which one has a key (from the master's view, and from the ranges themselves),
 * which node leads it, and its time (from answers). Everything may be out of date; answers correct it.
 */
export class Routes {
  readonly #clock: Clock;
  readonly #view: () => ClusterView;
  readonly #refresh: () => void;
  readonly #map = new RouteMap();
  /** The ranges of the view that was taken over last. */
  #viewed: readonly RangeDescriptor[] = [];
  readonly #known = new Map<number, Known>();

  /** `refresh` asks the master for its view, soon. */
  constructor(clock: Clock, view: () => ClusterView, refresh: () => void = () => {}) {
    this.#clock = clock;
    this.#view = view;
    this.#refresh = refresh;
  }

  /** Asks for the master's view, soon: a route turned out to be wrong, and no range has named the right one. */
  requestRefresh(): void {
    this.#refresh();
  }

  /** The range that has all keys, if one has. */
  get whole(): RangeDescriptor | undefined {
    this.#takeView();
    return this.#map.whole;
  }

  find(key: Bytes): RangeDescriptor | undefined {
    this.#takeView();
    return this.#map.find(key);
  }

  /** Returns the parts of a span in the order of keys; undefined if the range of any key in it is unknown. */
  covering(span: Span): readonly Route[] | undefined {
    this.#takeView();
    return this.#map.covering(span);
  }

  /** Takes descriptors from a range or the master. Returns true if anything in them is new. */
  learnRanges(ranges: readonly RangeDescriptor[]): boolean {
    return this.#map.learn(ranges);
  }

  /** Takes the error of a node that no longer has a range; it may name the ranges that have its keys now. */
  learnMoved(error: ServiceError): void {
    if (error.code === 'STALE_EPOCH') this.learnRanges(currentRanges(error));
    else if (error.code === 'RANGE_NOT_FOUND') this.requestRefresh();
  }

  #takeView(): void {
    const { ranges } = this.#view();
    if (ranges === this.#viewed) return;
    this.#viewed = ranges;
    if (this.#map.learn(ranges)) this.#forgetEnded();
  }

  /** Forgets ranges that have no keys any more. */
  #forgetEnded(): void {
    this.#map.forgetEnded();
    const ids = new Set(this.#map.routes.map(({ range }) => range.rangeId));
    for (const rangeId of this.#known.keys()) if (!ids.has(rangeId)) this.#known.delete(rangeId);
  }

  /** Returns the node that leads the range as far as known; 0 if none is known. */
  leader(rangeId: number): number {
    return this.#known.get(rangeId)?.leaderNode ?? 0;
  }

  learnLeader(rangeId: number, leaderNode: number): void {
    this.#get(rangeId).leaderNode = leaderNode;
  }

  /** Forgets that `node` leads the range; a leader that became known meanwhile stays. */
  forgetLeader(rangeId: number, node: number): void {
    const known = this.#get(rangeId);
    if (known.leaderNode === node) known.leaderNode = 0;
  }

  /** Only the leader knows the range's time; a follower's may be old. */
  learnInfo(info: RangeInfo, node: number): void {
    const known = this.#get(info.rangeId);
    if (info.term < known.term) return;
    if (info.leaderNode !== 0) known.leaderNode = info.leaderNode;
    if (info.leaderNode === node) this.#learnTime(known, info.term, info.rangeTimeMs);
  }

  learnReply(rangeId: number, node: number, reply: RangeReply): void {
    const known = this.#get(rangeId);
    if (reply.raftTerm < known.term) return;
    if (reply.rangeTimeMs === 0) return this.forgetLeader(rangeId, node);
    known.leaderNode = node;
    // The first answer of a millisecond counts: it was the fastest, and dozens may follow.
    if (reply.rangeTimeMs === known.timeMs && reply.raftTerm === known.term) return;
    this.#learnTime(known, reply.raftTerm, reply.rangeTimeMs);
  }

  learnTime(rangeId: number, timeMs: number): void {
    const known = this.#get(rangeId);
    this.#learnTime(known, known.term, timeMs);
  }

  #learnTime(known: Known, term: number, timeMs: number): void {
    known.term = term;
    known.timeMs = timeMs;
    known.timeAtMs = this.#clock.monotonicMs();
  }

  /** The range's time, extrapolated from its last answer; undefined if that is too long ago. */
  timeMs(rangeId: number): number | undefined {
    const known = this.#known.get(rangeId);
    if (known === undefined || known.timeAtMs < 0) return undefined;
    const elapsedMs = this.#clock.monotonicMs() - known.timeAtMs;
    return elapsedMs > TIME_FRESH_MS ? undefined : Math.floor(known.timeMs + elapsedMs);
  }

  /** The latest time of any range, however old the answer. */
  anyTimeMs(): number | undefined {
    let latest: number | undefined;
    const nowMs = this.#clock.monotonicMs();
    for (const known of this.#known.values()) {
      if (known.timeAtMs < 0) continue;
      const timeMs = Math.floor(known.timeMs + nowMs - known.timeAtMs);
      latest = Math.max(latest ?? 0, timeMs);
    }
    return latest;
  }

  #get(rangeId: number): Known {
    let known = this.#known.get(rangeId);
    if (known === undefined) {
      const leaderNode = this.#view().leaders.find(([id]) => id === rangeId)?.[1] ?? 0;
      known = { leaderNode, term: 0, timeMs: 0, timeAtMs: -1 };
      this.#known.set(rangeId, known);
    }
    return known;
  }
}
