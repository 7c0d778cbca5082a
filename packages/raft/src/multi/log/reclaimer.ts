/**
 * Frees the oldest segments, one after the other, while that is worthwhile (group-log.ts, W3).
 *
 * Y1. One run at a time, concurrent with appends; it ends when nothing is worth freeing or the log has ended.
 * Y2. A segment's file is removed only after its live entries and its records about whole groups have been copied
 *     durably, and after reads of it in progress have ended.
 */
import { assert, type Logger } from '@remora/base';
import type { LogIndex } from './log-index.ts';
import type { LogReader } from './log-reader.ts';
import { isWorthReclaiming, movedRecords, readLiveEntries } from './reclaim.ts';
import type { LogRecord } from './record-codec.ts';
import type { Segment, SegmentFiles } from './segment-files.ts';

export interface ReclaimerOptions {
  /** Oldest first; appends go to the last one, which stays. Freed segments are taken out. */
  readonly segments: Segment[];
  readonly index: LogIndex;
  readonly reader: LogReader;
  readonly files: SegmentFiles;
  readonly logger: Logger;
  /** The log was closed, or has failed. */
  readonly over: () => boolean;
  /**
   * Writes records that are built when their turn comes. Resolves to true when they are durable; to false if they never
   * will be.
   */
  readonly rewrite: (build: () => readonly LogRecord[]) => Promise<boolean>;
  /** A run has ended. */
  readonly ended: () => void;
  readonly failed: (error: unknown) => void;
}

export class Reclaimer {
  readonly #log: ReclaimerOptions;
  #running = false;
  #bytesMoved = 0;
  #segmentsReclaimed = 0;

  constructor(log: ReclaimerOptions) {
    this.#log = log;
  }

  get running(): boolean {
    return this.#running;
  }

  /** The bytes of live entries copied so far. */
  get bytesMoved(): number {
    return this.#bytesMoved;
  }

  get segmentsReclaimed(): number {
    return this.#segmentsReclaimed;
  }

  /** Begins a run if there is something to free and no run is in progress (Y1). */
  start(): void {
    if (this.#running || this.#head() === undefined) return;
    this.#running = true;
    this.#run().then(() => {
      this.#running = false;
      this.#log.ended();
    }, this.#log.failed);
  }

  async #run(): Promise<void> {
    const { segments, index, reader, files, logger, rewrite } = this.#log;
    await Promise.resolve(); // the caller must not be re-entered from within this call
    for (let head = this.#head(); head !== undefined; head = this.#head()) {
      const { generation, path } = head;
      if (index.liveBytes(generation) > 0) await this.#moveEntries(head);
      if (!(await rewrite(() => index.statesIn(generation)))) return;
      assert(index.liveBytes(generation) === 0, 'W3: nothing live is left in a segment that goes');
      segments.shift();
      index.dropSegment(generation);
      await reader.released([head]);
      await files.retire(head);
      this.#segmentsReclaimed++;
      logger.debug({ segment: path, left: segments.length }, 'reclaimed a log segment');
    }
  }

  /** The segment to free next, if there is one. */
  #head(): Segment | undefined {
    const { segments, index, over } = this.#log;
    return !over() && segments.length > 1 && isWorthReclaiming(segments, index) ? segments[0] : undefined;
  }

  async #moveEntries(head: Segment): Promise<void> {
    const { index, rewrite } = this.#log;
    for (const piece of await readLiveEntries(head, index)) {
      await rewrite(() => {
        const records = movedRecords(piece, head, index);
        for (const { entries } of records) for (const { data } of entries) this.#bytesMoved += data.length;
        return records;
      });
    }
  }
}
