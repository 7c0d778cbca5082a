/**
 * Files, as a port: exactly what the write-ahead log and the node's identity file need. Paths are relative to the
 * disk's root. Every failure other than "not found" is a broken invariant for the caller (a failed fsync is never
 * retried: Rebello et al., "Can Applications Recover from fsync Failures?", ATC'20).
 */
export interface Disk {
  /** File names directly in `dir`, sorted; empty when the directory does not exist. */
  list(dir: string): Promise<readonly string[]>;
  makeDir(dir: string): Promise<void>;
  /** Opens for reading and writing; creates the file when `create` is set, otherwise rejects with code `ENOENT`. */
  open(path: string, options: { readonly create: boolean }): Promise<DiskFile>;
  rename(change: { readonly from: string; readonly to: string }): Promise<void>;
  remove(path: string): Promise<void>;
  /** Makes creations, renames and removals in `dir` durable. */
  syncDir(dir: string): Promise<void>;
}

export interface DiskFile {
  size(): Promise<number>;
  /** Reads up to `length` bytes at `position`; fewer only at the end of the file. */
  read(position: number, length: number): Promise<Buffer>;
  /**
   * Writes `chunks` one after another from `position`, then calls `done`. The buffers must not change until then.
   * Not durable before a `sync` that begins after it has finished.
   */
  write(position: number, chunks: readonly Uint8Array[], done: (error: Error | null) => void): void;
  /** Makes the contents written so far durable (fdatasync), then calls `done`. */
  sync(done: (error: Error | null) => void): void;
  /**
   * `write` and then `sync` of the written bytes, as one step where the platform has one; then calls `done`. Only the
   * bytes written by this call are certain to be durable then.
   */
  writeSynced(position: number, chunks: readonly Uint8Array[], done: (error: Error | null) => void): void;
  /** Reserves space so that later writes below `size` need no new blocks; the file reads as zeros there. */
  preallocate(size: number): Promise<void>;
  truncate(size: number): Promise<void>;
  close(): Promise<void>;
}

/** `writeSynced` in two steps, for files whose platform has no single one. */
export function writeThenSync(
  file: Pick<DiskFile, 'write' | 'sync'>,
  position: number,
  chunks: readonly Uint8Array[],
  done: (error: Error | null) => void,
): void {
  file.write(position, chunks, (error) => {
    if (error === null) file.sync(done);
    else done(error);
  });
}
