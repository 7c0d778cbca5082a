import { crc32 } from '@remora/base';
import type { KeyValue } from '@remora/protocol';

/** Lengths of key and value, three numbers, and the lease. */
const HEAD_BYTES = 40;

/**
 * A hash over pairs in the order of their keys: CRC-32 of key, value, create and mod revision, version and lease. It
 * does not depend on how the pairs are divided among ranges, nor on the node that computes it.
 */
export class KeyHash {
  readonly #head = Buffer.alloc(HEAD_BYTES);
  #value = 0;

  get value(): number {
    return this.#value;
  }

  add({ key, value, createRevision, modRevision, version, lease }: KeyValue): void {
    const head = this.#head;
    head.writeUInt32BE(key.length, 0);
    head.writeUInt32BE(value.length, 4);
    // Exact, as they are safe integers.
    head.writeDoubleBE(createRevision, 8);
    head.writeDoubleBE(modRevision, 16);
    head.writeDoubleBE(version, 24);
    head.writeBigInt64BE(lease, 32);
    this.#value = crc32(value, crc32(key, crc32(head, this.#value)));
  }
}
