/** Samples per retention time: how precisely the age of a revision is known. */
const SAMPLES = 10;

/**
 * Decides when a leader proposes a compaction, so that versions stay readable for about the retention time. Ages are
 * counted from when this leader saw a revision; a new leader starts counting again, which only keeps versions longer.
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
    const oldest = this.#samples[0];
    if (oldest === undefined || nowMs - oldest.atMs < this.#retentionMs) return undefined;
    this.#samples.shift();
    return oldest.revision > state.compactRevision ? oldest.revision : undefined;
  }
}
