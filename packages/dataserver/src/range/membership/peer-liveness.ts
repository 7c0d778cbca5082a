import { LazyMap } from '@remora/base';
import type { ProgressStatus } from '@remora/raft';

/** While something happens to a range, it is checked at about this interval. */
const LOOK_MS = 1_000;

/**
 * For how long a range's leader has not heard from its other replicas. It is checked about every second while something
 * happens to the range. A leader that loses sight of a member is such an event (active-ranges.ts AC1), so a replica
 * that was heard at the last check was heard until shortly before this one.
 */
export class PeerLiveness {
  /** When each replica was last heard, or first checked. */
  readonly #heardMs = new LazyMap<number, number>();
  #lookedMs = Number.NEGATIVE_INFINITY;
  #allHeard = false;

  /** When it was last checked. */
  get lookedMs(): number {
    return this.#lookedMs;
  }

  /** Every replica was heard at the last check, and nothing has happened since. */
  get allHeard(): boolean {
    return this.#allHeard;
  }

  /** Something has happened to the range: the last check says nothing any more. */
  touched(): void {
    this.#allHeard = false;
  }

  look(progress: readonly ProgressStatus[], nowMs: number): void {
    const lastMs = this.#lookedMs;
    this.#lookedMs = nowMs;
    this.#allHeard = progress.every(({ heardLately }) => heardLately);
    const members = new Set(progress.map(({ replica }) => replica));
    for (const replica of this.#heardMs.keys()) if (!members.has(replica)) this.#heardMs.delete(replica);
    for (const { replica, heardLately } of progress) {
      const heardMs = this.#heardMs.get(replica);
      if (heardLately || heardMs === undefined) this.#heardMs.set(replica, nowMs);
      else if (heardMs === lastMs) this.#heardMs.set(replica, Math.max(heardMs, nowMs - LOOK_MS));
    }
  }

  /** 0 while the replica answers. */
  silentMs({ replica, heardLately }: ProgressStatus, nowMs: number): number {
    return heardLately ? 0 : nowMs - (this.#heardMs.get(replica) ?? nowMs);
  }

  /** A new term: what was heard in an earlier one says nothing. */
  clear(): void {
    this.#heardMs.clear();
    this.#lookedMs = Number.NEGATIVE_INFINITY;
    this.#allHeard = false;
  }
}
