import type { Bytes, Span } from './bytes.ts';

export interface Row {
  readonly key: Bytes;
  readonly value: Bytes;
}

/**
 * A row's contents in the form in which code uses them: the bytes are made only when needed. It never changes, and
 * `encode` returns the same bytes each time.
 */
export interface Unencoded {
  encode(): Bytes;
}

export type ResidentValue = Bytes | Unencoded;

export interface ScanOptions extends Span {
  /** Most rows to return; 0 or absent is unlimited. */
  readonly limit?: number;
  readonly reverse?: boolean;
}

/** A consistent, read-only picture of the engine at one moment. Must be released; afterwards it may not be used. */
export interface EngineView {
  get(key: Bytes): Bytes | undefined;
  /**
   * Rows in key order (or reverse), in batches of bounded size, so that a long scan neither fills memory nor hogs the
   * loop.
   */
  scan(options: ScanOptions): AsyncIterable<readonly Row[]>;
  release(): void;
}

/** The replacement of all rows of some spans. */
export interface Rebuild {
  readonly spans: readonly Span[];
  /**
   * Outside the spans, in a resident key space. On disk from before the first old row is deleted until the last new one
   * is there.
   */
  readonly marker: Row;
  /**
   * Rows of the resident key spaces, outside the spans, that become durable in one batch with the marker; `written` is
   * called when they are.
   */
  readonly withMarker?: { readonly rows: readonly Row[]; readonly written: () => void };
  /** All rows that the spans will hold, in any order. Read once, after the marker is written. */
  readonly rows: AsyncIterable<readonly Row[]>;
  /** Called in the step in which the new rows become visible. */
  readonly replaced: () => void;
  /** Called repeatedly while the work makes progress. */
  readonly progress: () => void;
  /** The error with which the process stops if `cause` interrupts the work. */
  readonly failure: (cause: unknown) => Error;
}

/** E5. Its name is `from` followed by `to`. */
export interface Link {
  readonly from: string;
  readonly to: string;
  /** The key under which it is found while it waits for its own: a name that the caller has looked up already. */
  readonly under: string;
}

/**
 * An ordered key-value store under the ranges of one node.
 *
 * E1. `put` and `delete` change only memory and are visible at once. A checkpoint makes all changes up to one moment
 *     durable atomically. The write-ahead log covers changes that are not yet in a checkpoint.
 * E2. `get`, `scanResident` and the mutations are synchronous: apply is one pass without an await on the hot path.
 * E3. The engine owns the keys and values passed to it; returned rows must not be changed.
 * E4. Rows of resident key spaces can also be read and changed by name: the key as a `binaryString`. A value that was
 *     put unencoded may be returned unencoded, or as bytes, to callers that ask by name; everywhere else it is bytes.
 * E5. A link is a resident row without a value, which records that `to` belongs to `from`. Scans and views return it
 *     like any other row. It can be changed only as a link, and cannot be read by key or name.
 */
export interface Engine {
  get(key: Bytes): Bytes | undefined;
  put(key: Bytes, value: Bytes): void;
  delete(key: Bytes): void;

  getResident(name: string): ResidentValue | undefined;
  putResident(name: string, value: ResidentValue): void;
  deleteResident(name: string): void;
  /** Puts a link. `isNew`: the caller knows that there is none yet. */
  link(link: Link, isNew: boolean): void;
  unlink(link: Link): void;
  isLinked(link: Link): boolean;

  /**
   * Rows of a span in key order, synchronously. The span must lie in a resident key space (see
   * `EngineOptions.resident`).
   */
  scanResident(options: ScanOptions): readonly Row[];
  /** The rows of any span, as they are at the moment of the call. */
  scan(options: ScanOptions): Promise<readonly Row[]>;
  /** Pins the present state for a longer read (a snapshot, a history scan). */
  view(): EngineView;

  /**
   * Removes every row of the span (a snapshot is about to be installed there, or the replica is gone), durably when it
   * resolves.
   */
  clearSpan(span: Span): Promise<void>;

  /**
   * Replaces all rows of some spans, in steps of bounded size between which all other work continues. Until the new
   * rows are visible the spans read as empty and must not be changed; checkpoints ignore them. Durable when it
   * resolves. Not atomic on disk: after a crash, a caller that finds the marker calls `rebuild` again before anything
   * reads the spans. A failure is the engine's (the process should stop); while the engine is being closed it rejects
   * without one, and the marker stays.
   */
  rebuild(plan: Rebuild): Promise<void>;

  /**
   * Called synchronously when a checkpoint begins, before the state is frozen: the place to `put` what is kept in
   * memory until then (applied index, remembered requests). Returns a function that unregisters it.
   */
  onCheckpoint(hook: () => void): () => void;
  /**
   * Writes everything changed before this call to disk in one synced batch. Calls made while one is in progress share
   * the next one. Resolves when durable.
   */
  checkpoint(): Promise<void>;
  /** Bytes and keys waiting in memory for the next checkpoint. */
  pending(): { readonly bytes: number; readonly keys: number };
  close(): Promise<void>;
}
