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
  /** Returns another range that has keys of the span here, or otherwise prevents the install of its snapshot. */
  readonly sharing: (span: Span, rangeId: number) => number | undefined;
  /**
   * Ends ranges here that the given one has taken over, as its snapshot shows; returns the rows that record it, for the
   * marker.
   */
  readonly swallowed: (span: Span, rangeId: number) => Endings;
}

/**
 * The rows of one replica as a whole: pictures of them for others, the install of a snapshot, and the removal of
 * compacted versions.
 *
 * RR1. While a snapshot replaces the rows nothing reads or changes them: no request is served (`unreadable` of the
 *      replica), no history is collected, and the rows take no part in a checkpoint. Raft applies nothing meanwhile.
 * RR2. Rows written below the compact revision are collected once more. A merge compacts both ranges as far as either
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

  /** Removes, in the background, what a compaction has made unreadable. Calling it often is cheap. */
  collect(): void {
    const { compactRevision, bounds } = this.#state;
    if (compactRevision === 0 || bounds.history === undefined || this.#closed || this.#replacing) return;
    this.#collector ??= new HistoryCollector(this.#deps.engine, bounds.history, this.#deps);
    this.#collector.collect(compactRevision);
  }

  /** The rows were replaced: a snapshot brings what its sender has not collected, and a split takes some away. */
  collectAnew(): void {
    this.#collector?.stop();
    this.#collector = undefined; // made when there is something to collect
    if (!this.#closed) this.collect();
  }

  /** The state has written something at this revision (RR2). */
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

  /** Called for every replica when a checkpoint begins. */
  stage(): void {
    assert(!this.#replacing, 'RR1: nothing is staged while rows are being replaced');
    this.#state.stage();
  }

  close(): void {
    this.#closed = true;
    this.#collector?.stop();
  }
}
