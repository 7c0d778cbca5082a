/** Options and counters of a disk log. */
import type { Disk, Logger } from '@remora/base';

export interface GroupLogOptions {
  /** Size of a segment. Space is reclaimed by segments; at least two are on disk. */
  readonly segmentBytes?: number;
  /** Most bytes of one combined write; a single larger call is written alone. */
  readonly writeBytesMax?: number;
  /** Bytes of entries that may wait for their write; above it the log is `full`. */
  readonly queueBytesMax?: number;
  /** Memory for the last entries of all groups that are returned when the log is opened. */
  readonly recentBytes?: number;
  /** Memory for recently read parts of the log: other groups with entries there read them from here. */
  readonly readCacheBytes?: number;
}

export interface GroupLogStats {
  /** Bytes of frames in all segments. */
  readonly bytes: number;
  /** Estimated bytes of entries that are not compacted. */
  readonly liveBytes: number;
  readonly segments: number;
  /** Writes made durable since the log was opened. */
  readonly syncs: number;
  /** Calls of `append` since the log was opened. */
  readonly appends: number;
  readonly bytesWritten: number;
  /** Bytes of live entries copied to the tail to free their segment. */
  readonly bytesMoved: number;
  readonly segmentsReclaimed: number;
  /** Data waiting for its write. */
  readonly queuedBytes: number;
  /** Calls of `read`, and the bytes of entries that they returned. */
  readonly reads: number;
  readonly bytesRead: number;
  /** Places of entries in the index, each for a part of one group's entries in one segment. */
  readonly indexRuns: number;
}

export interface OpenGroupLogOptions {
  readonly disk: Disk;
  readonly dir: string;
  readonly options?: GroupLogOptions;
  readonly logger: Logger;
  /** Called once when the log cannot continue. The node must stop: appends without a callback may be lost. */
  readonly onFailure: (error: Error) => void;
}

export const SEGMENT_BYTES_DEFAULT = 16 << 20;
/** The minimum of `segmentBytes`. */
export const SEGMENT_BYTES_MIN = 4096;
export const WRITE_BYTES_MAX_DEFAULT = 4 << 20;
export const QUEUE_BYTES_MAX_DEFAULT = 64 << 20;
export const RECENT_BYTES_DEFAULT = 32 << 20;
export const READ_CACHE_BYTES_DEFAULT = 16 << 20;
