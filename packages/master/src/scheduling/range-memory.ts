/** Remembers facts about ranges after their operators have ended, for as long as they matter. */
import type { Settings } from './settings.ts';

export class RangeMemory {
  /** When the last operator of a range ended. */
  readonly #movedAtMs = new Map<number, number>();
  /** By range: nodes on which a replica could not be created, and when. */
  readonly #failedAtMs = new Map<number, Map<number, number>>();

  moved(rangeId: number, nowMs: number): void {
    this.#movedAtMs.delete(rangeId); // so that the map stays ordered by time
    this.#movedAtMs.set(rangeId, nowMs);
  }

  /** The time until which balancing leaves a range alone. */
  restsUntil(rangeId: number, settings: Settings): number {
    const movedAtMs = this.#movedAtMs.get(rangeId);
    return movedAtMs === undefined ? Number.NEGATIVE_INFINITY : movedAtMs + settings.moveCooldownMs;
  }

  avoid(rangeId: number, nodeId: number, nowMs: number): void {
    const nodes = this.#failedAtMs.get(rangeId) ?? new Map<number, number>();
    nodes.set(nodeId, nowMs);
    this.#failedAtMs.set(rangeId, nodes);
  }

  isAvoided(rangeId: number, nodeId: number, nowMs: number, settings: Settings): boolean {
    const failedAtMs = this.#failedAtMs.get(rangeId)?.get(nodeId);
    return failedAtMs !== undefined && nowMs - failedAtMs < settings.retryAfterMs;
  }

  /** Drops facts that no longer matter. */
  forget(nowMs: number, settings: Settings): void {
    for (const [rangeId, movedAtMs] of this.#movedAtMs) {
      if (nowMs - movedAtMs < settings.moveCooldownMs) break;
      this.#movedAtMs.delete(rangeId);
    }
    for (const [rangeId, nodes] of this.#failedAtMs) {
      for (const [nodeId, failedAtMs] of nodes) if (nowMs - failedAtMs >= settings.retryAfterMs) nodes.delete(nodeId);
      if (nodes.size === 0) this.#failedAtMs.delete(rangeId);
    }
  }
}
