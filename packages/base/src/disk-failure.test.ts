import { expect, test } from 'vitest';
import { DiskFailedError } from './disk-failure.ts';

const withCode = (code: string, message: string): Error => Object.assign(new Error(message), { code });

test.each([
  { cause: withCode('ENOSPC', 'ENOSPC: no space left on device, write'), says: /: the disk is full: free space/ },
  { cause: withCode('EDQUOT', 'EDQUOT: disk quota exceeded, write'), says: /: the disk is full: free space/ },
  {
    cause: withCode('LEVEL_IO_ERROR', 'IO error: engine/000005.log: No space left on device'),
    says: /: the disk is full: free space/,
  },
  { cause: withCode('EIO', 'EIO: i/o error, fsync'), says: /: EIO: i.o error, fsync$/ },
])(
  'a disk that failed says what to do when it is full, and otherwise what is wrong: $cause.message',
  ({ cause, says }) => {
    const error = new DiskFailedError('write the log', cause);
    expect(error.message).toMatch(/^cannot write the log: /);
    expect(error.message).toMatch(says);
    expect(error.cause).toBe(cause);
  },
);
