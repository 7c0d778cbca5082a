import type { Bytes } from '@remora/base';
import { crc32 } from '@remora/base';

/** At the end of every stored value. */
const CHECKSUM_BYTES = 4;

/** The checksum of a row. It begins with the key's length, so that no byte can pass from the key to the value. */
function checksumOf(key: Bytes, value: Bytes): number {
  return crc32(value, crc32(key, key.length));
}

/** A value as it is stored: with a checksum over it and its key behind it. */
export function sealRow(key: Bytes, value: Bytes): Buffer {
  const sealed = Buffer.allocUnsafe(value.length + CHECKSUM_BYTES);
  sealed.set(value);
  sealed.writeUInt32LE(checksumOf(key, value), value.length);
  return sealed;
}

/** The value of a stored row, over the same memory; undefined when it is not what was stored under this key. */
export function openRow(key: Bytes, sealed: Buffer): Buffer | undefined {
  const length = sealed.length - CHECKSUM_BYTES;
  if (length < 0) return undefined;
  const value = sealed.subarray(0, length);
  return checksumOf(key, value) === sealed.readUInt32LE(length) ? value : undefined;
}
