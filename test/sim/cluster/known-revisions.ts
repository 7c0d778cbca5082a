/**
 * The combined knowledge of all clients about revisions, by the clock of the world.
 *
 * F1. Reads are current: an answer's revision is no lower than any answered before the read was sent. That holds while
 *     one range has all keys; with several, each range answers with a revision of its own, and only the revision of a
 *     write is above all that were answered before.
 * F2. A revision is forgotten after a requested compaction, or when it is older than the retention time.
 */
import { Violation } from '../common/violation.ts';

/** Nodes' clocks may run ahead of the world's, so the retention time may be over earlier. */
const RETENTION_FACTOR_MIN = 0.9;

export class KnownRevisions {
  /** The highest answered revision. */
  newest = 0;
  readonly #nowMs: () => number;
  readonly #retentionMs: number;
  readonly #oneRange: boolean;
  /** At these times no higher revision was allocated; both values grow. */
  readonly #seen: { readonly atMs: number; readonly revision: number }[] = [];
  #compactionAsked = 0;

  /** `retentionMs`: 0 keeps everything. */
  constructor(nowMs: () => number, options: { readonly retentionMs: number; readonly oneRange: boolean }) {
    this.#nowMs = nowMs;
    this.#retentionMs = options.retentionMs;
    this.#oneRange = options.oneRange;
  }

  /** Sends a request whose answer must be current (F1). */
  async current<T extends { readonly revision: number }>(question: () => Promise<T>): Promise<T> {
    if (this.#oneRange) return this.#above(this.newest - 1, question);
    const answer = await question();
    this.answered(answer.revision);
    return answer;
  }

  /** Sends a request that is a change if it is answered (F1). */
  written<T extends { readonly revision: number }>(question: () => Promise<T>): Promise<T> {
    return this.#above(this.newest, question);
  }

  async #above<T extends { readonly revision: number }>(floor: number, question: () => Promise<T>): Promise<T> {
    const askedMs = this.#nowMs();
    const answer = await question();
    const { revision } = answer;
    if (revision <= floor) {
      const detail = `an answer of revision ${revision}, asked for when all up to ${floor} was over`;
      throw new Violation('reads are current', detail);
    }
    this.answered(revision);
    const last = this.#seen.at(-1);
    if (last === undefined || (revision > last.revision && askedMs > last.atMs)) {
      this.#seen.push({ atMs: askedMs, revision });
    }
    return answer;
  }

  answered(revision: number): void {
    this.newest = Math.max(this.newest, revision);
  }

  compactionAsked(revision: number): void {
    this.#compactionAsked = Math.max(this.#compactionAsked, revision);
  }

  /** F2: whether history below this revision may be gone by now. */
  mayBeCompacted(revision: number): boolean {
    if (revision <= this.#compactionAsked) return true;
    if (this.#retentionMs === 0) return false;
    const before = this.#seen.findLast((seen) => seen.revision < revision);
    return this.#nowMs() - (before?.atMs ?? 0) >= this.#retentionMs * RETENTION_FACTOR_MIN;
  }
}
