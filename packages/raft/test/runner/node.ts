/** One replica of a scenario: its core, its disk, and what is on the way to the disk and to the state machine. */
import { assert } from '@remora/base';
import type { RaftConfig } from '../../src/core/config.ts';
import { RaftCore } from '../../src/core/raft.ts';
import type {
  ConfState,
  Entry,
  EntryRead,
  HardState,
  LogPosition,
  Ready,
  ReplicaId,
  SnapshotMeta,
} from '../../src/core/types.ts';

export type Persist = NonNullable<Ready['persist']>;

/** What survives a crash. */
interface Disk {
  hardState: HardState;
  start: LogPosition;
  entries: Entry[];
  /** What the state machine holds durably. */
  checkpoint: SnapshotMeta;
}

export interface NodeOptions {
  readonly id: ReplicaId;
  readonly conf: ConfState;
  readonly hardState: HardState;
  readonly start: LogPosition;
  readonly entries: readonly Entry[];
  readonly config: Partial<RaftConfig>;
  /** Every wait for a leader is this much longer than `electionTicks`. */
  readonly waitOffsetTicks: number;
}

const ELECTION_TICKS = 10;

export class ScenarioNode {
  readonly id: ReplicaId;
  readonly disk: Disk;
  core: RaftCore;
  up = true;
  /** Handed out and not durable, oldest first. */
  unsynced: Persist[] = [];
  /** Committed and not applied. */
  toApply: Entry[] = [];
  /** What the core wants to be read back. */
  toRead: EntryRead[] = [];
  /** What the state machine holds. */
  applied: SnapshotMeta;
  /** The snapshot that is being received, and from whom. */
  receiving: { readonly from: ReplicaId; readonly meta: SnapshotMeta } | undefined;
  readonly #config: RaftConfig;

  constructor(options: NodeOptions) {
    const { id, hardState, start, entries, conf } = options;
    this.id = id;
    this.disk = { hardState, start, entries: entries.slice(), checkpoint: { ...start, conf } };
    this.applied = this.disk.checkpoint;
    this.#config = {
      id,
      electionTicks: ELECTION_TICKS,
      heartbeatTicks: 2,
      maxEntryBytesPerMessage: 1_000_000,
      maxInflightMessages: 256,
      maxInflightBytes: 1_000_000,
      maxUncommittedBytes: 1_000_000,
      maxApplyingBytes: 1_000_000,
      random: { int: (bound) => Math.min(options.waitOffsetTicks, bound - 1), bytes: (n) => Buffer.alloc(n) },
      ...options.config,
    };
    this.core = this.#boot(false);
  }

  #boot(restarted: boolean): RaftCore {
    const { disk } = this;
    this.applied = disk.checkpoint;
    return new RaftCore(this.#config, {
      hardState: disk.hardState,
      conf: disk.checkpoint.conf,
      start: disk.start,
      entries: disk.entries,
      applied: disk.checkpoint.index,
      restarted,
    });
  }

  get electionTicks(): number {
    return this.#config.electionTicks;
  }

  /** The oldest write under way is durable. */
  persist(): Persist {
    const persist = this.unsynced.shift();
    assert(persist !== undefined, `n${this.id} has nothing to persist`);
    this.#write(persist);
    this.core.persisted(persist.mark);
    return persist;
  }

  /** Answers the oldest wish for entries that left memory. */
  readBack(): EntryRead {
    const read = this.toRead.shift();
    assert(read !== undefined, `n${this.id} wants nothing to be read`);
    const { start, entries } = this.disk;
    const first = read.from - start.index - 1;
    this.core.entriesRead(read, first < 0 ? [] : entries.slice(first, read.to - start.index));
    return read;
  }

  /** Loses what is not durable; of the writes under way the first `reached` came through. */
  crash(reached: number): void {
    for (const persist of this.unsynced.slice(0, reached)) this.#write(persist);
    this.up = false;
    this.unsynced = [];
    this.toApply = [];
    this.toRead = [];
    this.receiving = undefined;
  }

  restart(): void {
    this.up = true;
    // A log that lacks what the state machine holds restarts there (design §6).
    const { checkpoint } = this.disk;
    if (this.#durableTerm(checkpoint.index) !== checkpoint.term) {
      this.disk.start = { index: checkpoint.index, term: checkpoint.term };
      this.disk.entries = [];
    }
    this.core = this.#boot(true);
  }

  /** The state machine writes down what it has applied. */
  checkpoint(): void {
    this.disk.checkpoint = this.applied;
  }

  compact(to: number): void {
    const term = this.#durableTerm(to);
    assert(term !== undefined, `n${this.id} holds no entry at ${to}`);
    this.core.compactTo(to);
    this.disk.entries = this.disk.entries.slice(to - this.disk.start.index);
    this.disk.start = { index: to, term };
    this.checkpoint();
  }

  #durableTerm(index: number): number | undefined {
    const { start, entries } = this.disk;
    return index === start.index ? start.term : entries[index - start.index - 1]?.term;
  }

  #write(persist: Persist): void {
    const { disk } = this;
    if (persist.hardState !== undefined) disk.hardState = persist.hardState;
    if (persist.snapshot !== undefined) {
      disk.start = { index: persist.snapshot.index, term: persist.snapshot.term };
      disk.entries = [];
    }
    const first = persist.entries[0];
    if (first === undefined) return;
    const keep = first.index - disk.start.index - 1;
    disk.entries = keep >= 0 ? disk.entries.slice(0, keep).concat(persist.entries) : persist.entries.slice(-keep); // compacted since
  }
}
