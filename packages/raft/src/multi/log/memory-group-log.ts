import type { LogPosition } from '../../core/types.ts';
import type { GroupAppend, GroupId, GroupLog, RecoveredGroup } from '../ports.ts';
import { Replay } from './replay.ts';

/**
 * A `GroupLog` without a disk, for tests and simulations that do not care about recovery. Everything appended is
 * "durable" at once and is called back in a microtask, or by `schedule`.
 */
export class MemoryGroupLog implements GroupLog {
  readonly #replay: Replay;
  readonly #schedule: (fn: () => void) => void;
  #recovered: ReadonlyMap<GroupId, RecoveredGroup>;
  #appends = 0;
  #bytes = 0;
  #closed = false;

  constructor(
    options: {
      readonly schedule?: (fn: () => void) => void;
      readonly recovered?: ReadonlyMap<GroupId, RecoveredGroup>;
    } = {},
  ) {
    this.#schedule = options.schedule ?? queueMicrotask;
    this.#recovered = options.recovered ?? new Map();
    this.#replay = new Replay();
    for (const [groupId, { hardState, start, entries }] of this.#recovered) {
      this.#replay.apply({ groupId, hardState, restartAt: start, entries });
    }
  }

  /** The log as the next process would find it. */
  reopen(): MemoryGroupLog {
    return new MemoryGroupLog({ schedule: this.#schedule, recovered: this.#replay.result() });
  }

  recovered(): ReadonlyMap<GroupId, RecoveredGroup> {
    return this.#recovered;
  }

  forgetRecovered(): void {
    this.#recovered = new Map();
  }

  append(batch: readonly GroupAppend[], done: () => void): void {
    if (this.#closed) return;
    this.#appends++;
    for (const append of batch) {
      this.#replay.apply(append);
      for (const { data } of append.entries) this.#bytes += data.length;
    }
    this.#schedule(done);
  }

  compact(groupId: GroupId, position: LogPosition): void {
    if (this.#closed || !this.#replay.has(groupId)) return;
    this.#replay.apply({ groupId, compacted: position, entries: [] });
  }

  removeGroup(groupId: GroupId): void {
    if (!this.#closed) this.#replay.apply({ groupId, removed: true, entries: [] });
  }

  stats(): { readonly bytes: number; readonly segments: number; readonly syncs: number; readonly appends: number } {
    return { bytes: this.#bytes, segments: 1, syncs: this.#appends, appends: this.#appends };
  }

  async close(): Promise<void> {
    this.#closed = true;
  }
}
