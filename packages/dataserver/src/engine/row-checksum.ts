import type { Bytes } from '@remora/base';
import { crc32 } from '@remora/base';

/** The length of the checksum at the end of every stored value. */
const CHECKSUM_BYTES = 4;

/**
 * The checksum of a row. It covers the key's length first, so that no byte can move between key and value unnoticed.
 */
function checksumOf(key: Bytes, value: Bytes): number {
  return crc32(value, crc32(key, key.length));
}

/** Returns a value as it is stored: followed by a checksum over the key and the value. */
export function sealRow(key: Bytes, value: Bytes): Buffer {
  const sealed = Buffer.allocUnsafe(value.length + CHECKSUM_BYTES);
  sealed.set(value);
  sealed.writeUInt32LE(checksumOf(key, value), value.length);
  return sealed;
}

/** Returns the value of a stored row, over the same memory; undefined if it is not what was stored under this key. */
export function openRow(key: Bytes, sealed: Buffer): Buffer | undefined {
  const length = sealed.length - CHECKSUM_BYTES;
  if (length < 0) return undefined;
  const value = sealed.subarray(0, length);
  return checksumOf(key, value) === sealed.readUInt32LE(length) ? value : undefined;
}
