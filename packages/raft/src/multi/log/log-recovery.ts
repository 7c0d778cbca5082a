/**
 * Reads the log back and prepares it for appends.
 *
 * V1. A bad frame is a torn tail unless a later frame is intact; then it is damage (traps 25).
 * V2. A torn tail is durably cut off before anything is appended, and appends go to a new segment. The rest of the last
 *     segment is synced as well: a process that died may have written a frame without syncing it, and once others
 *     follow it, its loss would be damage.
 * V3. The last frame is written again before that sync. A sync that failed leaves bytes that are readable and count as
 *     clean, and no later sync brings them to the medium (Rebello et al., ATC'20). The frames before it were synced: a
 *     failure ends the log (group-log.ts, W1, W4).
 * V4. Memory is bounded: one segment at a time, an outline of each group, and a limited number of the last entries.
 */
import type { Disk, DiskFile, Logger } from '@remora/base';
import type { GroupId, RecoveredGroup } from '../ports.ts';
import {
  decodeSegmentHeader,
  type Frame,
  hasLaterFrame,
  LogDamagedError,
  readFrame,
  SEGMENT_HEADER_BYTES,
} from './log-format.ts';
import { type FramePlace, LogIndex } from './log-index.ts';
import { recentEntries } from './recent-entries.ts';
import { RecordReader } from './record-codec.ts';
import { Replay, type ReplayedGroup } from './replay.ts';
import { listSegmentFiles, type Segment, type SegmentFileName, segmentPath, syncFile } from './segment-files.ts';

export interface RecoveredLog {
  readonly groups: Map<GroupId, RecoveredGroup>;
  readonly index: LogIndex;
  /** Oldest first; none of them receives further appends. */
  readonly segments: Segment[];
  readonly spares: readonly string[];
  readonly nextGeneration: number;
  readonly nextSequence: number;
}

export async function recoverLog(options: {
  readonly disk: Disk;
  readonly dir: string;
  /** Spares of another size are deleted: the option has changed since. */
  readonly segmentBytes: number;
  /** Memory limit for the last entries. */
  readonly recentBytes: number;
  readonly logger: Logger;
}): Promise<RecoveredLog> {
  const { disk, dir } = options;
  await disk.makeDir(dir);
  await disk.syncDir(dir.slice(0, Math.max(0, dir.lastIndexOf('/'))));
  const names = await listSegmentFiles(disk, dir);
  const recovery = new Recovery(options);
  for (const name of names) if (name.kind === 'segment') await recovery.readSegment(name);
  const replayed = recovery.result();
  await recovery.cutTail();
  const { index, segments } = recovery;
  const recent = await recentEntries(segments, replayed, options.recentBytes);
  const groups = new Map<GroupId, RecoveredGroup>();
  for (const [groupId, { hardState, start, outline }] of replayed) {
    const bytes = index.groupBytes(groupId);
    groups.set(groupId, { hardState, start, outline: { ...outline, bytes }, entries: recent.get(groupId) ?? [] });
  }
  const spares = await usableSpares(options, names);
  return {
    groups,
    index,
    segments,
    spares,
    nextGeneration: (names.at(-1)?.generation ?? 0) + 1,
    nextSequence: recovery.nextSequence,
  };
}

/** Calls `visit` with every frame of a segment that is known to be intact up to `segment.position`. */
export async function readFrames(segment: Segment, visit: (frame: Frame) => void): Promise<void> {
  const bytes = await segment.file.read(0, segment.position);
  for (let at = SEGMENT_HEADER_BYTES; at < segment.position; ) {
    const frame = readFrame(bytes, at, segment.generation);
    if (frame === undefined) {
      throw new LogDamagedError({ file: segment.path, offset: at }, 'a frame that was intact no longer is');
    }
    visit(frame);
    at = frame.end;
  }
}

async function usableSpares(
  options: { readonly disk: Disk; readonly dir: string; readonly segmentBytes: number },
  names: readonly SegmentFileName[],
): Promise<string[]> {
  const { disk, dir } = options;
  const usable: string[] = [];
  for (const { name, kind } of names) {
    if (kind !== 'spare') continue;
    const path = `${dir}/${name}`;
    const file = await disk.open(path, { create: false });
    const size = await file.size();
    await file.close();
    if (size === options.segmentBytes) usable.push(path);
    else await disk.remove(path);
  }
  return usable;
}

class Recovery {
  readonly index = new LogIndex();
  readonly segments: Segment[] = [];
  /** Files without a frame: prepared and never used, or torn in their first write. */
  readonly #unused: { readonly path: string; readonly file: DiskFile }[] = [];
  readonly #disk: Disk;
  readonly #dir: string;
  readonly #logger: Logger;
  readonly #replay = new Replay();
  /** The place of the last intact frame in its segment. */
  #lastFrameAt = 0;
  #nextSequence: number | undefined;

  constructor(options: { readonly disk: Disk; readonly dir: string; readonly logger: Logger }) {
    this.#disk = options.disk;
    this.#dir = options.dir;
    this.#logger = options.logger;
  }

  get nextSequence(): number {
    return this.#nextSequence ?? 1;
  }

  async readSegment({ generation }: SegmentFileName): Promise<void> {
    const path = segmentPath(this.#dir, generation);
    const file = await this.#disk.open(path, { create: false });
    const bytes = await file.read(0, await file.size());
    const header = decodeSegmentHeader(path, bytes);
    if (header === undefined || header.generation !== generation) {
      this.#refuseLostHeader(path, bytes, generation);
      this.#unused.push({ path, file });
      return;
    }
    this.#checkFollows(header.firstSequence);
    this.#nextSequence = header.firstSequence;
    const position = this.#readAll(path, bytes, generation);
    this.segments.push({ generation, path, file, position, readers: 0 });
  }

  result(): Map<GroupId, ReplayedGroup> {
    try {
      return this.#replay.result();
    } catch (error) {
      throw new LogDamagedError({ file: this.segments[0]?.path ?? this.#dir, offset: 0 }, reason(error));
    }
  }

  /** V2, V3. */
  async cutTail(): Promise<void> {
    const last = this.segments.at(-1);
    if (last !== undefined) {
      if (last.position === SEGMENT_HEADER_BYTES) {
        this.segments.pop();
        this.#unused.push(last);
      } else {
        if ((await last.file.size()) > last.position) await last.file.truncate(last.position);
        // The header of a segment is written with its first frame.
        const from = this.#lastFrameAt === SEGMENT_HEADER_BYTES ? 0 : this.#lastFrameAt;
        await writeAgain(last.file, from, last.position);
        await syncFile(last.file);
      }
    }
    for (const { path, file } of this.#unused) {
      await file.close();
      await this.#disk.remove(path);
    }
    await this.#disk.syncDir(this.#dir);
  }

  /** Applies the frames of a segment and returns their end. */
  #readAll(path: string, bytes: Buffer, generation: number): number {
    let at = SEGMENT_HEADER_BYTES;
    for (;;) {
      const frame = readFrame(bytes, at, generation);
      if (frame === undefined || frame.sequence !== this.nextSequence) break;
      try {
        this.#take(frame.payload, { segment: generation, offset: at });
      } catch (error) {
        throw new LogDamagedError({ file: path, offset: at }, reason(error));
      }
      this.#nextSequence = frame.sequence + 1;
      this.#lastFrameAt = at;
      at = frame.end;
    }
    // V1, within this segment; `#checkFollows` does it for later ones.
    if (hasLaterFrame(bytes, at, { generation, above: this.nextSequence })) {
      throw new LogDamagedError({ file: path, offset: at }, 'a frame is bad, but later ones are intact');
    }
    this.#logger.debug({ file: path, offset: at, sequence: this.nextSequence }, 'the frames of the segment end here');
    return at;
  }

  #take(payload: Buffer, place: FramePlace): void {
    const reader = new RecordReader(payload);
    while (!reader.atEnd) {
      const head = reader.head();
      const entries = reader.entriesOutline();
      this.#replay.apply(head, entries);
      const { first, last, bytes } = entries;
      this.index.place({ ...head, first, last, bytes }, place);
    }
  }

  /** V1, across segments: a segment is begun only when all frames before it are durable. */
  #checkFollows(firstSequence: number): void {
    const unused = this.#unused[0];
    if (unused !== undefined) {
      throw new LogDamagedError({ file: unused.path, offset: 0 }, 'its header is bad, but a later segment is in use');
    }
    const last = this.segments.at(-1);
    if (last !== undefined && firstSequence !== this.nextSequence) {
      throw new LogDamagedError(
        { file: last.path, offset: last.position },
        `frame ${this.nextSequence} is bad, but later segments are in use`,
      );
    }
  }

  /**
   * A bad header belongs to a file that was never used, or was torn with its first frame, unless it has a second frame.
   */
  #refuseLostHeader(path: string, bytes: Buffer, generation: number): void {
    const first = readFrame(bytes, SEGMENT_HEADER_BYTES, generation);
    const above = first?.sequence ?? this.#nextSequence ?? 0;
    if (hasLaterFrame(bytes, first?.end ?? SEGMENT_HEADER_BYTES, { generation, above })) {
      throw new LogDamagedError({ file: path, offset: 0 }, 'the header of the segment is bad');
    }
  }
}

async function writeAgain(file: DiskFile, from: number, to: number): Promise<void> {
  const bytes = await file.read(from, to - from);
  await new Promise<void>((resolve, reject) => {
    file.write(from, [bytes], (error) => (error === null ? resolve() : reject(error)));
  });
}

function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
