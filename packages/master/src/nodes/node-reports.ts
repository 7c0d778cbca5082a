import { isSameReport, type NodeHeartbeat, type RangeReport } from '@remora/protocol';
import type { Liveness } from '../scheduling/cluster-model.ts';

interface Heard {
  atMs: number;
  /** The last heartbeat, with the reports of all ranges. */
  heartbeat: NodeHeartbeat;
  readonly byRange: Map<number, RangeReport>;
  /** Ranges whose reports nobody has taken yet (NR3). */
  readonly untaken: Set<number>;
}

/** How long a node may be silent before its state changes. */
export interface SilenceLimits {
  readonly suspectAfter: number;
  readonly downAfter: number;
}

/** Only a process that stood still gets no call of `looked` for this long: it is called many times in that time. */
const STOOD_STILL_MS = 1_000;

/**
 * The latest reports of nodes to the masters' leader, only in its memory: each leader collects them again (master.ts
 * M4).
 *
 * NR1. Time during which the leader itself stood still (paused, or starved by its machine) does not count as silence of
 *      a node: the reports of that time are read after the leader continues, and it considers no node down before that.
 * NR2. A heartbeat that names only what changed counts if it continues the last one heard from that node in this term.
 *      Any other is refused, and the node sends all of its reports. So what a leader knows of a node is complete.
 * NR3. Each report is given to the scheduling until it is taken: the masters may learn of a new membership only later
 *      (ranges/range-orders.ts RO2).
 * NR4. A report that repeats the one before is given to the scheduling and changes nothing else: what is made of all
 *      reports is made again only after a change.
 */
export class NodeReports {
  readonly #heard = new Map<number, Heard>();
  #sinceMs = 0;
  #lookedMs = 0;
  #version = 0;

  /** Another leader, or another term of the same one: nodes that have not reported are silent from now on. */
  termBegan(nowMs: number): void {
    this.#heard.clear();
    this.#version++;
    this.#sinceMs = nowMs;
    this.#lookedMs = nowMs;
  }

  /** NR1. Must be called several times a second. */
  looked(nowMs: number): void {
    const passedMs = nowMs - this.#lookedMs;
    this.#lookedMs = nowMs;
    if (passedMs <= STOOD_STILL_MS) return;
    this.#sinceMs += passedMs;
    for (const heard of this.#heard.values()) heard.atMs += passedMs;
  }

  /** Returns false if it does not continue what was heard before (NR2). */
  heard(heartbeat: NodeHeartbeat, nowMs: number): boolean {
    this.looked(nowMs);
    const { nodeId, ranges, changes } = heartbeat;
    const since = changes?.since ?? 0;
    const known = this.#heard.get(nodeId);
    if (since === 0) {
      const byRange = new Map(ranges.map((report) => [report.rangeId, report]));
      this.#heard.set(nodeId, { atMs: nowMs, heartbeat, byRange, untaken: new Set(byRange.keys()) });
      this.#version++;
      return true;
    }
    if (known === undefined || known.heartbeat.changes?.number !== since) return false;
    known.atMs = nowMs;
    const all = this.#merge(known, heartbeat);
    known.heartbeat = { ...heartbeat, ranges: all };
    return true;
  }

  /** The reports of all ranges: the same list if nothing is new. */
  #merge(known: Heard, { ranges, changes }: NodeHeartbeat): readonly RangeReport[] {
    const ended = changes?.ended ?? [];
    let isChanged = false;
    for (const rangeId of ended) {
      const before = known.byRange.get(rangeId);
      if (before === undefined) continue;
      isChanged = true;
      this.#noteLead(before, undefined);
      known.byRange.delete(rangeId);
      known.untaken.delete(rangeId);
    }
    for (const report of ranges) {
      known.untaken.add(report.rangeId);
      const before = known.byRange.get(report.rangeId);
      if (before !== undefined && isSameReport(before, report)) continue; // NR4
      isChanged = true;
      this.#noteLead(before, report);
      known.byRange.set(report.rangeId, report);
    }
    return isChanged ? [...known.byRange.values()] : known.heartbeat.ranges;
  }

  #noteLead(before: RangeReport | undefined, after: RangeReport | undefined): void {
    const [was, is] = [before?.lead !== undefined, after?.lead !== undefined];
    if (was !== is || (is && before?.term !== after?.term)) this.#version++;
  }

  /** NR3. The reports of a node that were not taken, and those of the ranges in `wanted`. */
  toTake(nodeId: number, wanted: readonly number[]): readonly RangeReport[] {
    const known = this.#heard.get(nodeId);
    if (known === undefined) return [];
    const ids = new Set([...known.untaken, ...wanted]);
    return [...ids].flatMap((rangeId) => known.byRange.get(rangeId) ?? []);
  }

  taken(nodeId: number, rangeId: number): void {
    this.#heard.get(nodeId)?.untaken.delete(rangeId);
  }

  /** Grows whenever the leaders may have changed. */
  get version(): number {
    return this.#version;
  }

  /** For how long this master has been the leader. */
  leadingMs(nowMs: number): number {
    return nowMs - this.#sinceMs;
  }

  last(nodeId: number): NodeHeartbeat | undefined {
    return this.#heard.get(nodeId)?.heartbeat;
  }

  all(nowMs: number): ReadonlyMap<number, { readonly silentMs: number; readonly heartbeat: NodeHeartbeat }> {
    return new Map(
      [...this.#heard].map(([nodeId, { atMs, heartbeat }]) => [nodeId, { silentMs: nowMs - atMs, heartbeat }]),
    );
  }

  stateOf(nodeId: number, nowMs: number, { suspectAfter, downAfter }: SilenceLimits): Liveness {
    const heard = this.#heard.get(nodeId);
    const silentMs = nowMs - (heard?.atMs ?? this.#sinceMs);
    if (silentMs > downAfter) return 'down';
    return heard === undefined || silentMs > suspectAfter ? 'suspect' : 'up';
  }

  /** Whether the node was silent for long enough to report it: a new leader cannot know that of any node. */
  isSilent(nodeId: number, nowMs: number, { suspectAfter }: SilenceLimits): boolean {
    return nowMs - (this.#heard.get(nodeId)?.atMs ?? this.#sinceMs) > suspectAfter;
  }

  /** The leader of each range, as far as known: if several claim it, the one with the newest term. */
  leaders(): readonly (readonly [rangeId: number, nodeId: number])[] {
    const leaders = new Map<number, { readonly node: number; readonly term: number }>();
    for (const [node, { heartbeat }] of this.#heard) {
      for (const { rangeId, term, lead } of heartbeat.ranges) {
        const known = leaders.get(rangeId);
        if (lead !== undefined && (known === undefined || known.term < term)) leaders.set(rangeId, { node, term });
      }
    }
    return [...leaders].map(([rangeId, { node }]) => [rangeId, node] as const);
  }
}
