const FULL_CODES: readonly unknown[] = ['ENOSPC', 'EDQUOT'];
/** LevelDB only passes on the system's message. */
const FULL_WORDS = /No space left on device|Disk quota exceeded/;

export const DISK_FULL_ADVICE = 'the disk is full: free space, then restart the node';

/**
 * A disk did not do what was asked of it: it is full, or failed. The operation is never repeated, because the kernel
 * may have dropped the data; the process must end, and may be restarted.
 */
export class DiskFailedError extends Error {
  override readonly name = 'DiskFailedError';

  /** `what` continues "cannot …". */
  constructor(what: string, cause: Error) {
    super(`cannot ${what}: ${saysFull(cause) ? DISK_FULL_ADVICE : cause.message}`, { cause });
  }
}

/** Whether an error of the system or of LevelDB says that a disk is full. */
export function saysFull(error: Error): boolean {
  return ('code' in error && FULL_CODES.includes(error.code)) || FULL_WORDS.test(error.message);
}
