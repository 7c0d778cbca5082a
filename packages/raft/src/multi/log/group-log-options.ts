/** How a disk log is opened, and what it counts. */
import type { Disk, Logger } from '@remora/base';

export interface GroupLogOptions {
  /** Size of a segment. Space is reclaimed in pieces of it; at least two are on disk. */
  readonly segmentBytes?: number;
  /** Most bytes gathered into one write; a single larger call is written alone. */
  readonly writeBytesMax?: number;
  /** Bytes of entries that may wait for their write; above it the log is `full`. */
  readonly queueBytesMax?: number;
  /** Memory for the last entries of all groups that are handed out when the log is opened. */
  readonly recentBytes?: number;
  /** Memory for parts of the log that were read lately: the groups that have entries there read them from here. */
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
  /** Calls of `read`, and the bytes of entries that they gave. */
  readonly reads: number;
  readonly bytesRead: number;
  /** Places of entries that the index holds, each for a piece of one group's entries in one segment. */
  readonly indexRuns: number;
}

export interface OpenGroupLogOptions {
  readonly disk: Disk;
  readonly dir: string;
  readonly options?: GroupLogOptions;
  readonly logger: Logger;
  /** Called once when the log cannot go on. The node must stop: what was not called back may be lost. */
  readonly onFailure: (error: Error) => void;
}

export const SEGMENT_BYTES_DEFAULT = 16 << 20;
/** The least that `segmentBytes` may be. */
export const SEGMENT_BYTES_MIN = 4096;
export const WRITE_BYTES_MAX_DEFAULT = 4 << 20;
export const QUEUE_BYTES_MAX_DEFAULT = 64 << 20;
export const RECENT_BYTES_DEFAULT = 32 << 20;
export const READ_CACHE_BYTES_DEFAULT = 16 << 20;
