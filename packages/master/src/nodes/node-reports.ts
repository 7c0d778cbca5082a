import type { NodeHeartbeat } from '@remora/protocol';
import type { Liveness } from '../scheduling/cluster-model.ts';

interface Heard {
  readonly atMs: number;
  readonly heartbeat: NodeHeartbeat;
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
 */
export class NodeReports {
  readonly #heard = new Map<number, Heard>();
  #sinceMs = 0;
  #lookedMs = 0;

  /** Another leader, or another term of the same one: nodes that have not reported are silent from now on. */
  termBegan(nowMs: number): void {
    this.#heard.clear();
    this.#sinceMs = nowMs;
    this.#lookedMs = nowMs;
  }

  /** NR1. Must be called several times a second. */
  looked(nowMs: number): void {
    const passedMs = nowMs - this.#lookedMs;
    this.#lookedMs = nowMs;
    if (passedMs <= STOOD_STILL_MS) return;
    this.#sinceMs += passedMs;
    for (const [nodeId, { atMs, heartbeat }] of this.#heard) {
      this.#heard.set(nodeId, { atMs: atMs + passedMs, heartbeat });
    }
  }

  heard(heartbeat: NodeHeartbeat, nowMs: number): void {
    this.looked(nowMs);
    this.#heard.set(heartbeat.nodeId, { atMs: nowMs, heartbeat });
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
