import { Packer } from '@remora/base';

/**
 * Messages as bytes.
 *
 * P1. One writer is used again and again, so encoding never runs inside itself; results are copies.
 */
const packer = new Packer(1 << 16);

/** `firstByte`, then what `write` writes. The result is the caller's. */
export function packWith<T>(firstByte: number, message: T, write: (out: Packer, message: T) => void): Buffer {
  packer.begin();
  packer.byte(firstByte);
  write(packer, message);
  return packer.copy();
}

/** `firstByte`, then `value`. The result is the caller's. */
export function pack(firstByte: number, value: unknown): Buffer {
  packer.begin();
  packer.byte(firstByte);
  packer.value(value);
  return packer.copy();
}

/** The value alone. The result is the caller's. */
export function packPlain(value: unknown): Buffer {
  packer.begin();
  packer.value(value);
  return packer.copy();
}
