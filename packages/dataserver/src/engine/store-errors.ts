import type { Bytes } from '@remora/base';

export type StoreOpenCode = 'LOCKED' | 'NEWER_FORMAT' | 'UNREADABLE';

/** The data directory cannot be used; `message` says what the operator can do. */
export class StoreOpenError extends Error {
  override readonly name = 'StoreOpenError';
  readonly code: StoreOpenCode;

  constructor(code: StoreOpenCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? {} : { cause });
    this.code = code;
  }
}

/** The largest number of a key's bytes in a message. */
const SHOWN_BYTES_MAX = 64;

/** The store returned something other than what was written to it. The node must stop. */
export class StoreDamagedError extends Error {
  override readonly name = 'StoreDamagedError';

  constructor(place: string, what: string, cause?: unknown) {
    super(
      `the storage engine is damaged in ${place}: ${what}. ` +
        'Keep the data, and check the disk. Without what is missing this node must not serve as the one it was: ' +
        'it is replaced by a new one, under another name and with an empty directory.',
      cause === undefined ? {} : { cause },
    );
  }
}

/** Returns the name of a row in a message. */
export function showKey(key: Bytes): string {
  const hex = Buffer.from(key.subarray(0, SHOWN_BYTES_MAX)).toString('hex');
  return key.length > SHOWN_BYTES_MAX ? `${hex}… (${key.length} bytes)` : hex;
}
