/**
 * Numbers in a store that knows fences. With each number it keeps the highest version of the lock that it has seen, and
 * it refuses lower ones.
 *
 * Reading raises the fence, too. Otherwise an old holder could still write between the read and the write of the new
 * holder, which would then overwrite what it has not read.
 */
export interface FencedStore {
  /** @throws OutdatedError if a newer holder has read or written the number. */
  read(id: string, version: number): Promise<number>;
  /** @throws OutdatedError if a newer holder has read or written the number. */
  write(id: string, value: number, version: number): Promise<void>;
  /** The number as it is at first, without a fence. */
  create(id: string, value: number): Promise<void>;
  close(): Promise<void>;
}

/** The caller's lock was lost, and somebody else has had it since. */
export class OutdatedError extends Error {
  override readonly name = 'OutdatedError';

  constructor(id: string, version: number) {
    super(`${id}: version ${version} is out of date`);
  }
}
