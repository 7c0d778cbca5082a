/** Samples per retention time: how precisely the age of a revision is known. */
const SAMPLES = 10;

/**
 * Decides when a leader proposes a compaction, so that versions stay readable for about the retention time. Ages are
 * counted from when this leader saw a revision; a new leader starts counting again, which only keeps versions longer.
 *
 * AU1. A call considers all revisions that have become old since the last call, because calls may be far apart: a range
 *      at rest is visited rarely (replicas/active-ranges.ts AC3). So a compaction is late by one visit at most.
 */
export class AutoCompactor {
  readonly #retentionMs: number;
  #samples: { readonly atMs: number; readonly revision: number }[] = [];

  constructor(retentionMs: number) {
    this.#retentionMs = retentionMs;
  }

  reset(): void {
    this.#samples = [];
  }

  /** The revision to compact at now, if any. */
  tick(nowMs: number, state: { readonly revision: number; readonly compactRevision: number }): number | undefined {
    if (this.#retentionMs === 0) return undefined;
    const last = this.#samples[this.#samples.length - 1];
    if (last === undefined || nowMs - last.atMs >= this.#retentionMs / SAMPLES) {
      this.#samples.push({ atMs: nowMs, revision: state.revision });
    }
    const old = this.#takeOld(nowMs - this.#retentionMs);
    return old !== undefined && old > state.compactRevision ? old : undefined;
  }

  /** AU1. Returns the latest revision that was seen until then. */
  #takeOld(untilMs: number): number | undefined {
    let old: number | undefined;
    for (let first = this.#samples[0]; first !== undefined && first.atMs <= untilMs; first = this.#samples[0]) {
      old = first.revision;
      this.#samples.shift();
    }
    return old;
  }
}
