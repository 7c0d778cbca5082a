import { assert, type Clock, type Engine, type Logger, type Span } from '@remora/base';
import type { SnapshotMeta, SnapshotReceiver, StateMachineSnapshot } from '@remora/raft';
import type { Endings, Installer } from '../install/installer.ts';
import { takeSnapshot } from '../install/snapshot-source.ts';
import type { RangeState } from '../state/range-state.ts';
import { HistoryCollector } from './history-collector.ts';

export interface ReplicaRowsDeps {
  readonly engine: Engine;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly installer: Installer;
  /** Another range than the given one that has keys of the span here, or otherwise keeps a snapshot of it out. */
  readonly sharing: (span: Span, rangeId: number) => number | undefined;
  /** Ends ranges here that the given one has taken over, as its snapshot shows; what says so, for the marker. */
  readonly swallowed: (span: Span, rangeId: number) => Endings;
}

/**
 * The rows of one replica as a whole: pictures of them for others, a snapshot that takes their place, and clearing up
 * what was compacted.
 *
 * RR1. While a snapshot takes their place nobody reads or changes any of them: neither are requests served
 *      (`unreadable` of the replica), nor is history collected, nor do they take part in a checkpoint. Raft applies
 *      nothing meanwhile.
 * RR2. What is written below what was compacted is cleared up once more. A merge compacts both ranges as far as either
 *      was, and a transaction that one of them had prepared may commit at an earlier revision (decision 19, T5).
 */
export class ReplicaRows {
  readonly #deps: ReplicaRowsDeps;
  readonly #state: RangeState;
  #collector: HistoryCollector | undefined;
  #replacing = false;
  #closed = false;

  constructor(deps: ReplicaRowsDeps, state: RangeState) {
    this.#deps = deps;
    this.#state = state;
    this.collectAnew();
  }

  /** RR1. */
  get replacing(): boolean {
    return this.#replacing;
  }

  /** Clears up, in the background, what a compaction has made unreadable. Cheap to call again and again. */
  collect(): void {
    if (this.#state.compactRevision > 0) this.#collector?.collect(this.#state.compactRevision);
  }

  /**
   * The rows are others now: after a snapshot what its sender has not collected came along, after a split some left.
   */
  collectAnew(): void {
    this.#collector?.stop();
    const { history } = this.#state.bounds;
    this.#collector = history && new HistoryCollector(this.#deps.engine, history, this.#deps);
    if (!this.#closed) this.collect();
  }

  /** The state has written something at a revision (RR2). */
  written(revision: number): void {
    if (revision <= this.#state.compactRevision) this.collectAnew();
  }

  snapshot(): StateMachineSnapshot {
    this.#state.stage();
    const { rangeId, applied, conf, bytes, bounds } = this.#state;
    return takeSnapshot(this.#deps.engine, { rangeId, span: bounds, meta: { ...applied, conf }, bytes });
  }

  /** `replaced` is called when the state is the snapshot's. */
  install(
    meta: SnapshotMeta,
    target: { readonly replicaId: number; readonly settled: () => Promise<void>; readonly replaced: () => void },
  ): SnapshotReceiver {
    const { rangeId, bounds } = this.#state;
    const { replicaId, settled, replaced } = target;
    return this.#deps.installer.receive({
      ...{ rangeId, replicaId, meta, span: bounds, settled },
      sharing: (span) => this.#deps.sharing(span, rangeId),
      begins: (hull) => {
        this.#replacing = true;
        this.#collector?.stop();
        return this.#deps.swallowed(hull, rangeId);
      },
      replaced: () => {
        this.#replaced(meta);
        replaced();
      },
    });
  }

  #replaced(meta: SnapshotMeta): void {
    this.#replacing = false;
    assert(this.#state.load(), 'a snapshot carries the state of its range');
    assert(this.#state.applied.index === meta.index, 'a snapshot stands for the position that it names');
    this.collectAnew();
  }

  /** Called for every replica as a checkpoint begins. */
  stage(): void {
    assert(!this.#replacing, 'RR1: nothing is staged while rows are being replaced');
    this.#state.stage();
  }

  close(): void {
    this.#closed = true;
    this.#collector?.stop();
  }
}
