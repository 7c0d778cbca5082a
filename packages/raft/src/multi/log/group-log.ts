/**
 * The write-ahead log of a node on disk.
 *
 * W1. One write and its sync are in progress at a time; records appended in the meantime go into the next frame.
 *     Callbacks come in the order of the calls, after the sync (L1).
 * W2. The order of operations is the order of the calls, including compactions and removals. A compaction alone causes
 *     no write; its record goes with the next frame.
 * W3. Segments are reclaimed oldest first. Before a segment is removed, its last live entries are copied to the tail,
 *     marked as moved, and its records about whole groups are repeated. This copy is durable before the file is
 *     removed.
 * W4. After a failure there are no more callbacks and no more writes (L3, traps 26).
 * W5. The queue has a limit in bytes (`queueBytesMax`), above which the log reports `full`: then the host refuses
 *     proposals and drops appends of other leaders. The queue exceeds it at most by what one turn was about to append.
 */
import { assert, DiskFailedError } from '@remora/base';
import { entryBytes } from '../../core/log.ts';
import type { Entry, LogPosition } from '../../core/types.ts';
import type { EntryRange, GroupAppend, GroupId, GroupLog, RecoveredGroup } from '../ports.ts';
import {
  type GroupLogStats,
  type OpenGroupLogOptions,
  QUEUE_BYTES_MAX_DEFAULT,
  READ_CACHE_BYTES_DEFAULT,
  RECENT_BYTES_DEFAULT,
  SEGMENT_BYTES_DEFAULT,
  SEGMENT_BYTES_MIN,
  WRITE_BYTES_MAX_DEFAULT,
} from './group-log-options.ts';
import { encodeSegmentHeader, SEGMENT_HEADER_BYTES } from './log-format.ts';
import { type LogIndex, placedRecord } from './log-index.ts';
import { LogReader } from './log-reader.ts';
import { type RecoveredLog, recoverLog } from './log-recovery.ts';
import { Reclaimer } from './reclaimer.ts';
import { FrameWriter, type LogRecord } from './record-codec.ts';
import { type Segment, SegmentFiles } from './segment-files.ts';

/** Opens the log in `dir` and reads it. Rejects with `LogDamagedError` or `LogVersionError` if it must not be used. */
export async function openGroupLog(request: OpenGroupLogOptions): Promise<{ stats(): GroupLogStats } & GroupLog> {
  const segmentBytes = request.options?.segmentBytes ?? SEGMENT_BYTES_DEFAULT;
  assert(
    segmentBytes >= SEGMENT_BYTES_MIN && segmentBytes <= 2 ** 30,
    'the segment size must be between 4 KiB and 1 GiB',
  );
  const { disk, dir, logger } = request;
  const recentBytes = request.options?.recentBytes ?? RECENT_BYTES_DEFAULT;
  const recovered = await recoverLog({ disk, dir, segmentBytes, recentBytes, logger });
  const { spares, nextGeneration } = recovered;
  const files = new SegmentFiles({ disk, dir, segmentBytes, spares, nextGeneration });
  const active = await files.prepare();
  return new DiskGroupLog({ request, recovered, files, active, segmentBytes });
}

type Operation =
  | {
      readonly type: 'append';
      readonly batch: readonly GroupAppend[];
      readonly bytes: number;
      readonly done: () => void;
    }
  | { readonly type: 'compact'; readonly groupId: GroupId; readonly position: LogPosition }
  | { readonly type: 'remove'; readonly groupId: GroupId }
  /** Records that are built when their turn comes; they get a frame of their own. */
  | { readonly type: 'rewrite'; readonly build: () => readonly LogRecord[]; readonly done: () => void };

type Effect = LogRecord | { readonly compact: GroupId; readonly position: LogPosition };

interface FrameContent {
  /** The changes that the frame makes to the index, in order. */
  readonly effects: readonly Effect[];
  readonly done: readonly (() => void)[];
}

class DiskGroupLog implements GroupLog {
  readonly #dir: string;
  readonly #onFailure: (error: Error) => void;
  readonly #segmentBytes: number;
  readonly #writeBytesMax: number;
  readonly #queueBytesMax: number;
  readonly #files: SegmentFiles;
  readonly #index: LogIndex;
  readonly #reader: LogReader;
  readonly #reclaimer: Reclaimer;
  readonly #writer = new FrameWriter();
  #recovered: ReadonlyMap<GroupId, RecoveredGroup>;

  /** Oldest first; appends go to the last one. */
  readonly #segments: Segment[];
  #active: Segment;
  #next: Promise<Segment>;
  #sequence: number;

  #queue: Operation[] = [];
  #queuedBytes = 0;
  /** A frame is being written, or its callbacks run. */
  #busy = false;
  #failed = false;
  #closed = false;
  readonly #whenQuiet: (() => void)[] = [];
  readonly #whenFrameDone: (() => void)[] = [];

  #syncs = 0;
  #appends = 0;
  #bytesWritten = 0;

  constructor(parts: {
    readonly request: OpenGroupLogOptions;
    readonly recovered: RecoveredLog;
    readonly files: SegmentFiles;
    readonly active: Segment;
    readonly segmentBytes: number;
  }) {
    const { request, recovered } = parts;
    this.#dir = request.dir;
    this.#onFailure = request.onFailure;
    this.#segmentBytes = parts.segmentBytes;
    this.#writeBytesMax = request.options?.writeBytesMax ?? WRITE_BYTES_MAX_DEFAULT;
    this.#files = parts.files;
    this.#queueBytesMax = request.options?.queueBytesMax ?? QUEUE_BYTES_MAX_DEFAULT;
    this.#index = recovered.index;
    this.#reader = new LogReader({
      index: this.#index,
      segment: (generation) => this.#segments.find((segment) => segment.generation === generation),
      frameDone: () => this.#frameDone(),
      cacheBytes: request.options?.readCacheBytes ?? READ_CACHE_BYTES_DEFAULT,
    });
    this.#recovered = recovered.groups;
    this.#sequence = recovered.nextSequence;
    this.#active = parts.active;
    this.#segments = [...recovered.segments, parts.active];
    this.#next = this.#prepareNext();
    this.#reclaimer = new Reclaimer({
      segments: this.#segments,
      index: this.#index,
      reader: this.#reader,
      files: this.#files,
      logger: request.logger,
      over: () => this.#closed || this.#failed,
      rewrite: (build) => this.#rewrite(build),
      ended: () => this.#pump(),
      failed: (error) => this.#fail('reclaim space in', toError(error)),
    });
  }

  // ------------------------------------------------------------------------------------------ the port

  recovered(): ReadonlyMap<GroupId, RecoveredGroup> {
    return this.#recovered;
  }

  forgetRecovered(): void {
    this.#recovered = new Map();
  }

  append(batch: readonly GroupAppend[], done: () => void): void {
    if (this.#failed || this.#closed) return;
    this.#appends++;
    let bytes = 0;
    for (const { entries } of batch) for (const entry of entries) bytes += entryBytes(entry);
    this.#queuedBytes += bytes;
    this.#queue.push({ type: 'append', batch, bytes, done });
    this.#pump();
  }

  get full(): boolean {
    return this.#queuedBytes >= this.#queueBytesMax;
  }

  read(range: EntryRange): Promise<readonly Entry[]> {
    return this.#reader.read(range);
  }

  compact(groupId: GroupId, position: LogPosition): void {
    this.#enqueue({ type: 'compact', groupId, position });
  }

  removeGroup(groupId: GroupId): void {
    this.#enqueue({ type: 'remove', groupId });
  }

  stats(): GroupLogStats {
    return {
      bytes: this.#segments.reduce((sum, segment) => sum + segment.position, 0),
      liveBytes: this.#index.totalLiveBytes(),
      segments: this.#segments.length,
      syncs: this.#syncs,
      appends: this.#appends,
      bytesWritten: this.#bytesWritten,
      bytesMoved: this.#reclaimer.bytesMoved,
      segmentsReclaimed: this.#reclaimer.segmentsReclaimed,
      queuedBytes: this.#queuedBytes,
      reads: this.#reader.reads,
      bytesRead: this.#reader.bytesRead,
      indexRuns: this.#index.runCount,
    };
  }

  async close(): Promise<void> {
    this.#closed = true;
    if (!this.#failed) {
      this.#pump();
      if (this.#busy || this.#reclaimer.running) await new Promise<void>((resolve) => this.#whenQuiet.push(resolve));
    }
    await this.#reader.released(this.#segments);
    const next = await this.#next.catch(() => undefined);
    for (const segment of [...this.#segments, ...(next === undefined ? [] : [next])]) await segment.file.close();
  }

  // ------------------------------------------------------------------------------------------ writing

  #frameDone(): Promise<void> {
    return this.#busy ? new Promise((resolve) => this.#whenFrameDone.push(resolve)) : Promise.resolve();
  }

  #enqueue(operation: Operation): void {
    if (this.#failed || this.#closed) return;
    this.#queue.push(operation);
    this.#pump();
  }

  #pump(): void {
    if (this.#busy || this.#failed) return;
    this.#reclaimer.start(); // not only at rest: a busy log would never reclaim
    const content = this.#gather();
    if (content !== undefined) {
      this.#busy = true;
      this.#write(content);
      return;
    }
    this.#reclaimer.start(); // the compactions just applied may have made it possible
    if (!this.#reclaimer.running) for (const resolve of this.#whenQuiet.splice(0)) resolve();
  }

  /** Takes operations off the queue and encodes them; returns undefined if there is nothing to write. */
  #gather(): FrameContent | undefined {
    this.#writer.begin();
    const effects: Effect[] = [];
    const done: (() => void)[] = [];
    const add = (record: LogRecord): void => {
      this.#writer.add(record);
      effects.push(record);
    };
    const writable = this.#queue.some((operation) => operation.type !== 'compact');
    if (writable || this.#closed) for (const record of this.#index.unwrittenStarts()) add(record);

    let taken = 0;
    for (const operation of this.#queue) {
      if (taken > 0 && this.#endsFrame(operation, effects.length)) break;
      taken++;
      if (operation.type === 'append') {
        for (const append of operation.batch) add(append);
        this.#queuedBytes -= operation.bytes;
        done.push(operation.done);
      } else if (operation.type === 'remove') {
        add({ groupId: operation.groupId, removed: true, entries: [] });
      } else if (operation.type === 'compact') {
        effects.push({ compact: operation.groupId, position: operation.position });
      } else {
        for (const record of operation.build()) add(record);
        done.push(operation.done);
        break;
      }
    }
    this.#queue = this.#queue.slice(taken);
    if (this.#writer.payloadBytes > 0 || done.length > 0) return { effects, done };
    for (const effect of effects) this.#follow(effect, 0); // compactions only
    return this.#queue.length > 0 ? this.#gather() : undefined;
  }

  #endsFrame(operation: Operation, effects: number): boolean {
    // A rewrite depends on the index, which must include everything before it (X2).
    if (operation.type === 'rewrite') return effects > 0;
    return this.#writer.payloadBytes >= this.#writeBytesMax;
  }

  #write(content: FrameContent): void {
    if (this.#writer.payloadBytes === 0) {
      for (const effect of content.effects) this.#follow(effect, 0); // compactions only
      queueMicrotask(() => this.#complete(content));
      return;
    }
    const room = this.#segmentBytes - this.#active.position - this.#writer.payloadBytes - 2 * SEGMENT_HEADER_BYTES;
    if (room >= 0 || this.#active.position === 0) {
      this.#writeFrame(content);
      return;
    }
    this.#next.then(
      (segment) => {
        this.#active = segment;
        this.#segments.push(segment);
        this.#next = this.#prepareNext();
        this.#writeFrame(content);
      },
      () => {}, // reported by `#prepareNext`
    );
  }

  #writeFrame(content: FrameContent): void {
    const segment = this.#active;
    const frame = this.#writer.finish({ generation: segment.generation, sequence: this.#sequence });
    for (const effect of content.effects) this.#follow(effect, segment.position || SEGMENT_HEADER_BYTES);
    let chunks = frame.chunks;
    let bytes = frame.bytes;
    const position = segment.position;
    if (position === 0) {
      const header = encodeSegmentHeader({ generation: segment.generation, firstSequence: this.#sequence });
      chunks = [header, ...chunks];
      bytes += header.length;
    }
    this.#sequence++;
    segment.file.writeSynced(position, chunks, (error) => {
      if (error !== null) return this.#fail('append to', error);
      segment.position = position + bytes;
      this.#syncs++;
      this.#bytesWritten += bytes;
      this.#complete(content);
    });
  }

  #complete(content: FrameContent): void {
    if (this.#failed) return;
    for (const resolve of this.#whenFrameDone.splice(0)) resolve();
    try {
      // `#busy` is still set: whatever these append is gathered into one frame.
      for (const done of content.done) done();
    } finally {
      this.#busy = false;
      this.#pump();
    }
  }

  /** X2. `offset` is the start of the frame with the effect. */
  #follow(effect: Effect, offset: number): void {
    if ('compact' in effect) this.#index.compact(effect.compact, effect.position);
    else this.#index.place(placedRecord(effect), { segment: this.#active.generation, offset });
  }

  #prepareNext(): Promise<Segment> {
    const next = this.#files.prepare();
    next.catch((error: unknown) => this.#fail('prepare a segment of', toError(error)));
    return next;
  }

  #fail(what: string, cause: Error): void {
    if (this.#failed) return;
    this.#failed = true;
    this.#queue = [];
    for (const resolve of this.#whenQuiet.splice(0)) resolve();
    this.#onFailure(new DiskFailedError(`${what} the write-ahead log in ${this.#dir}`, cause));
  }

  /** Queues records to be built when their turn comes; resolves when they, and all before them, are durable. */
  #rewrite(build: () => readonly LogRecord[]): Promise<boolean> {
    return new Promise((resolve) => {
      if (this.#failed) return resolve(false);
      this.#queue.push({ type: 'rewrite', build, done: () => resolve(true) });
      this.#pump();
    });
  }
}

function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
