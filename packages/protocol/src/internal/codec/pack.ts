import { Packer } from '@remora/base';

/**
 * Messages as bytes.
 *
 * P1. One writer is reused, so encoding never runs inside itself; results belong to the caller.
 */
const packer = new Packer(1 << 16);

/** Packs `firstByte`, then what `write` writes. The caller owns the result. */
export function packWith<T>(firstByte: number, message: T, write: (out: Packer, message: T) => void): Buffer {
  packer.begin();
  packer.byte(firstByte);
  write(packer, message);
  return packer.copy();
}

/** Packs `firstByte`, then `value`. The caller owns the result. `expectedBytes`: its approximate size, if known. */
export function pack(firstByte: number, value: unknown, expectedBytes = 0): Buffer {
  packer.begin(0, expectedBytes);
  packer.byte(firstByte);
  packer.value(value);
  return packer.take();
}

/** Packs the value alone. The caller owns the result. */
export function packPlain(value: unknown): Buffer {
  packer.begin();
  packer.value(value);
  return packer.copy();
}
