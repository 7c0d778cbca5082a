import type { ProgressStatus } from '@remora/raft';

/** For how long a range's leader has not heard from its other replicas; checked about every second. */
export class PeerLiveness {
  /** When each replica was last heard, or first checked. */
  readonly #heardMs = new Map<number, number>();
  #lookedMs = Number.NEGATIVE_INFINITY;

  /** When it was last checked. */
  get lookedMs(): number {
    return this.#lookedMs;
  }

  look(progress: readonly ProgressStatus[], nowMs: number): void {
    this.#lookedMs = nowMs;
    const members = new Set(progress.map(({ replica }) => replica));
    for (const replica of this.#heardMs.keys()) if (!members.has(replica)) this.#heardMs.delete(replica);
    for (const { replica, heardLately } of progress) {
      if (heardLately || !this.#heardMs.has(replica)) this.#heardMs.set(replica, nowMs);
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
  }
}
