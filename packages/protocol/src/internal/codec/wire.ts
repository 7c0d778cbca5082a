import { type Bytes, ServiceError } from '@remora/base';
import { pack } from './pack.ts';
import { unpack, unpackMeasured } from './unpack.ts';

/**
 * MessagePack as all formats use it: nested arrays of null, booleans, numbers, strings, bytes and 64-bit integers, and
 * plain objects in error details only. No records, no references, no extension types.
 *
 * W1. The first byte of every frame and log entry is its format version; a reader refuses versions it does not know.
 * W2. Bytes in the result are slices of the input: copy them to keep them (conventions 7).
 */

/** Encodes `value`, of about so many bytes if that is known, behind a version byte. The caller owns the result. */
export function packVersioned(version: number, value: unknown, expectedBytes = 0): Buffer {
  return pack(version, value, expectedBytes);
}

/** The inverse; throws `INVALID_ARGUMENT` for another version or anything malformed. */
export function unpackVersioned(version: number, bytes: Bytes, what: string): unknown {
  return read(version, bytes, { what, unpack });
}

/** The same, with the number of bytes of each item if the value is a list. */
export function unpackMeasuredVersioned(
  version: number,
  bytes: Bytes,
  what: string,
): ReturnType<typeof unpackMeasured> {
  return read(version, bytes, { what, unpack: unpackMeasured });
}

interface Reading<T> {
  readonly what: string;
  readonly unpack: (bytes: Bytes, from: number) => T;
}

function read<T>(version: number, bytes: Bytes, { what, unpack }: Reading<T>): T {
  if (bytes[0] !== version) {
    throw new ServiceError('INVALID_ARGUMENT', `${what}: format version ${String(bytes[0])} is not ${version}`);
  }
  try {
    return unpack(bytes, 1);
  } catch (cause) {
    throw new ServiceError('INVALID_ARGUMENT', `${what} is malformed`, { cause });
  }
}
