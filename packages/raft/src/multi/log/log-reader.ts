/**
 * Reads entries of one group back from the segments (ports.ts, L4).
 *
 * D1. A segment that is being read is not removed: it is pinned from the look-up of its place on, and `released` waits
 *     for the pins. There are no new pins once the segment has no live entries.
 * D2. The index is ahead of the disk (X2): the reader waits for an entry whose frame is being written, unless entries
 *     before it are available.
 * D3. The index says where to look, and the records are the truth. If a search fails, and the index still names the
 *     same place after the frame that was being written, the log is damaged.
 * D4. One search at a time goes through a segment; the next one finds the frames in the cache (frame-cache.ts). So
 *     groups that lag together, for example after a start, read the log once and not each for itself.
 */
import { entryBytes, takeBytes } from '../../core/log.ts';
import type { Entry } from '../../core/types.ts';
import type { EntryRange, GroupId } from '../ports.ts';
import { FrameCache, type IndexedFrame } from './frame-cache.ts';
import { FrameCursor } from './frame-cursor.ts';
import { LogDamagedError } from './log-format.ts';
import type { EntryPlace, LogIndex } from './log-index.ts';
import { RecordReader } from './record-codec.ts';
import type { Segment } from './segment-files.ts';

const PIECE_BYTES_MIN = 64 * 1024;
const PIECE_BYTES_MAX = 1024 * 1024;

export class LogReader {
  readonly #index: LogIndex;
  readonly #segment: (generation: number) => Segment | undefined;
  readonly #frameDone: () => Promise<void>;
  readonly #whenReleased: (() => void)[] = [];
  readonly #cache: FrameCache;
  /** The last search in each segment that is being read (D4). */
  readonly #searches = new Map<Segment, Promise<unknown>>();
  #reads = 0;
  #bytesRead = 0;

  /** `frameDone` resolves when the frame that is being written, if any, is durable. */
  constructor(parts: {
    readonly index: LogIndex;
    readonly segment: (generation: number) => Segment | undefined;
    readonly frameDone: () => Promise<void>;
    readonly cacheBytes: number;
  }) {
    this.#cache = new FrameCache(parts.cacheBytes);
    this.#index = parts.index;
    this.#segment = parts.segment;
    this.#frameDone = parts.frameDone;
  }

  get reads(): number {
    return this.#reads;
  }

  get bytesRead(): number {
    return this.#bytesRead;
  }

  async read(range: EntryRange): Promise<readonly Entry[]> {
    const { groupId, from, to, maxBytes } = range;
    this.#reads++;
    const found = new Found(groupId, from, maxBytes);
    let cursor: FrameCursor | undefined;
    let vain: EntryPlace | undefined;
    while (found.next <= to && !found.full) {
      const place = this.#index.placeOf(groupId, found.next);
      if (place === undefined) break;
      const segment = this.#segment(place.segment);
      if (segment === undefined) throw lost(place, segment, range);
      if (cursor?.segment !== segment) {
        cursor = new FrameCursor(segment, { cache: this.#cache, pieceBytes: pieceBytes(maxBytes) });
      }
      cursor.seek(place.offset);
      if (await this.#searchInTurn(cursor, found, Math.min(to, place.last))) continue;
      if (found.entries.length > 0) break;
      if (place.segment === vain?.segment && place.offset === vain.offset) throw lost(place, segment, range);
      vain = place;
      await this.#frameDone(); // D2
    }
    const entries = takeBytes(found.entries, maxBytes);
    for (const entry of entries) this.#bytesRead += entryBytes(entry);
    return entries;
  }

  /** Resolves when none of the segments is being read. (D1) */
  async released(segments: readonly Segment[]): Promise<void> {
    while (segments.some((segment) => segment.readers > 0)) {
      await new Promise<void>((resolve) => this.#whenReleased.push(resolve));
    }
  }

  /** Runs `search` after earlier searches in the same segment (D1, D4). */
  async #searchInTurn(cursor: FrameCursor, found: Found, last: number): Promise<boolean> {
    const { segment } = cursor;
    segment.readers++;
    const before = this.#searches.get(segment);
    const searching = (before ?? Promise.resolve()).then(() => search(cursor, found, last));
    const over = searching.catch(() => undefined);
    this.#searches.set(segment, over);
    try {
      return await searching;
    } finally {
      if (this.#searches.get(segment) === over) this.#searches.delete(segment);
      segment.readers--;
      if (segment.readers === 0) for (const resolve of this.#whenReleased.splice(0)) resolve();
    }
  }
}

/**
 * Searches the frames from the cursor on for entries up to `last`. Returns false if the next wanted entry was not
 * there.
 */
async function search(cursor: FrameCursor, found: Found, last: number): Promise<boolean> {
  const wanted = found.next;
  while (found.next <= last && !found.full) {
    const frame = await cursor.next();
    if (frame === undefined) break;
    found.take(frame, last);
  }
  return found.next > wanted;
}

/** How much is read from the file at a time: the wanted entries lie among those of other groups. */
function pieceBytes(maxBytes: number): number {
  return Math.min(PIECE_BYTES_MAX, Math.max(PIECE_BYTES_MIN, maxBytes));
}

function lost(place: EntryPlace, segment: Segment | undefined, { groupId, from }: EntryRange): LogDamagedError {
  const file = segment?.path ?? `segment ${place.segment}`;
  return new LogDamagedError(
    { file, offset: place.offset },
    `entries of group ${groupId} from index ${from} on are missing at the position where they were written`,
  );
}

/** Entries found so far, contiguous. */
class Found {
  readonly #groupId: GroupId;
  readonly #from: number;
  readonly #maxBytes: number;
  readonly entries: Entry[] = [];
  #bytes = 0;

  constructor(groupId: GroupId, from: number, maxBytes: number) {
    this.#groupId = groupId;
    this.#from = from;
    this.#maxBytes = maxBytes;
  }

  get next(): number {
    return this.#from + this.entries.length;
  }

  get full(): boolean {
    return this.#bytes >= this.#maxBytes;
  }

  /** Takes a frame's entries up to `last`. Its later records replace its earlier ones (X3). */
  take({ payload, records }: IndexedFrame, last: number): void {
    const reader = new RecordReader(payload);
    for (const position of records.get(this.#groupId) ?? []) {
      reader.seek(position);
      if (reader.head().moved !== true) this.#cutFrom(reader.peekFirst());
      this.#push(reader.entries(this.next, last));
    }
  }

  #cutFrom(first: number): void {
    if (first === 0 || first >= this.next) return;
    for (const entry of this.entries.splice(Math.max(0, first - this.#from))) this.#bytes -= entryBytes(entry);
  }

  #push(entries: readonly Entry[]): void {
    for (const entry of entries) {
      if (entry.index !== this.next || this.full) return;
      this.entries.push(entry);
      this.#bytes += entryBytes(entry);
    }
  }
}
