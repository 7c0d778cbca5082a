/**
 * Keeps the entries that all groups of a node hold in memory within a limit in bytes.
 *
 * K1. The oldest entries of all groups leave first. Appends are recorded in extents, in the order of time. An extent
 *     ends when all groups together have appended a fraction of the limit since it began, so that a group's recent
 *     entries do not leave together with its old ones.
 * K2. Only groups whose log grew or was truncated are examined, never all of them. An idle group costs one extent while
 *     it has entries in memory, and nothing afterwards.
 * K3. Entries that are not durable stay (core/log.ts, G4). This may exceed the limit; the queue of the log bounds it.
 */

/** One group's log in memory, as the core shows it. */
export interface CachedLog {
  /** The memory of its entries, in bytes. */
  readonly entryMemoryBytes: number;
  /** Entries behind this index are in memory. */
  readonly entryWindowStart: number;
  readonly lastIndex: number;
  evictTo(index: number): void;
}

/** Entries that one group appended about the same time; it grows while it is the group's newest. */
interface Extent {
  readonly share: CacheShare;
  /** The bytes that all groups had appended when it began. */
  readonly begunAt: number;
  upTo: number;
}

/** The precision of the order of time: this fraction of the limit, but at most this many bytes within a group. */
const EXTENT_FRACTION = 1 / 8;
const EXTENT_BYTES_MAX = 64 * 1024;
/** At most this many extents that cannot leave yet are examined at a time. */
const BLOCKED_MAX = 16;
const SWEEP_MIN = 1024;

export class EntryCache {
  readonly #limit: number;
  /** Oldest first, from `#head` on. */
  #extents: Extent[] = [];
  #head = 0;
  #sweepAt = SWEEP_MIN;
  #bytes = 0;
  #evictedBytes = 0;
  /** Bytes appended so far. */
  #appended = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Bytes that have left so far. */
  get evictedBytes(): number {
    return this.#evictedBytes;
  }

  get extentCount(): number {
    return this.#extents.length - this.#head;
  }

  /** Adds a group. Call `CacheShare.update` whenever its entries in memory may have changed. */
  join(log: CachedLog): CacheShare {
    const share = new CacheShare(this, log);
    share.update();
    return share;
  }

  /** A share's bytes changed. */
  changed(share: CacheShare, by: number): void {
    this.#bytes += by;
    if (by > 0) this.#note(share, by);
    if (this.#bytes > this.#limit) this.#evict();
  }

  #note(share: CacheShare, bytes: number): void {
    let extent = share.newest;
    this.#appended += bytes;
    share.sinceExtent += bytes;
    const long = extent !== undefined && this.#appended - extent.begunAt > this.#limit * EXTENT_FRACTION;
    if (extent === undefined || long || share.sinceExtent > EXTENT_BYTES_MAX) {
      extent = { share, begunAt: this.#appended, upTo: 0 };
      share.newest = extent;
      share.sinceExtent = 0;
      this.#extents.push(extent);
      if (this.extentCount >= this.#sweepAt) this.#sweep();
    }
    extent.upTo = share.log.lastIndex;
  }

  /** K1, K3. */
  #evict(): void {
    let left = this.extentCount;
    let blocked = 0;
    while (this.#bytes > this.#limit && left > 0 && blocked < BLOCKED_MAX) {
      left--;
      const extent = this.#extents[this.#head++] as Extent;
      if (!this.#evictExtent(extent)) {
        blocked++;
        this.#extents.push(extent);
      } else if (extent.share.newest === extent) extent.share.newest = undefined;
    }
    if (this.#head * 2 < this.#extents.length) return;
    this.#extents = this.#extents.slice(this.#head);
    this.#head = 0;
  }

  /** Returns false if some of it must stay. */
  #evictExtent({ share, upTo }: Extent): boolean {
    if (share.left) return true;
    share.log.evictTo(upTo);
    const gone = share.settle();
    this.#bytes -= gone;
    this.#evictedBytes += gone;
    return isGone(share.log, upTo);
  }

  /** Forgets extents without entries in memory: checkpoints cut logs too. */
  #sweep(): void {
    this.#extents = this.#extents
      .slice(this.#head)
      .filter(
        (extent) => extent.share.newest === extent || !(extent.share.left || isGone(extent.share.log, extent.upTo)),
      );
    this.#head = 0;
    this.#sweepAt = Math.max(SWEEP_MIN, 2 * this.#extents.length);
  }
}

/** One group's share of the cache. */
export class CacheShare {
  readonly log: CachedLog;
  readonly #cache: EntryCache;
  /** Managed by the cache. */
  newest: Extent | undefined;
  sinceExtent = 0;
  left = false;
  #bytes = 0;

  constructor(cache: EntryCache, log: CachedLog) {
    this.#cache = cache;
    this.log = log;
  }

  /** The group's log has changed. */
  update(): void {
    if (this.left) return;
    const by = this.log.entryMemoryBytes - this.#bytes;
    this.#bytes += by;
    this.#cache.changed(this, by);
  }

  /** The group is closed. */
  leave(): void {
    if (this.left) return;
    this.left = true;
    this.newest = undefined;
    this.#cache.changed(this, -this.#bytes);
  }

  /** Updates the count after entries have left; returns their number of bytes. */
  settle(): number {
    const gone = this.#bytes - this.log.entryMemoryBytes;
    this.#bytes -= gone;
    return gone;
  }
}

function isGone(log: CachedLog, upTo: number): boolean {
  return Math.min(upTo, log.lastIndex) <= log.entryWindowStart;
}
