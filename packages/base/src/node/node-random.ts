import { randomBytes, randomFillSync } from 'node:crypto';
import { assert } from '../assert.ts';
import type { Random } from '../random.ts';

const POOL_BYTES = 4096;
/** Requests for more bytes make a call of their own. */
const POOLED_BYTES_MAX = 64;
const WIDE = 2 ** 53;

/** The system's cryptographic generator, read in blocks so that one number or id costs no system call. */
export function nodeRandom(): Random {
  const pool = Buffer.alloc(POOL_BYTES);
  let used = POOL_BYTES;

  /** Returns the place of the next `length` unused bytes of the pool. */
  function draw(length: number): number {
    if (used + length > POOL_BYTES) {
      randomFillSync(pool);
      used = 0;
    }
    const at = used;
    used += length;
    return at;
  }

  function draw53(): number {
    const at = draw(8);
    const high = pool.readUInt32LE(at) >>> 11;
    const low = pool.readUInt32LE(at + 4);
    return high * 2 ** 32 + low;
  }

  function bytes(length: number): Buffer {
    if (length > POOLED_BYTES_MAX) return randomBytes(length);
    const out = Buffer.allocUnsafe(length);
    const at = draw(length);
    pool.copy(out, 0, at, at + length);
    // Bytes that were returned, perhaps as a token, must not stay in the pool.
    pool.fill(0, at, at + length);
    return out;
  }

  return {
    int(bound) {
      assert(Number.isSafeInteger(bound) && bound > 0, 'the bound of a random integer is a safe integer above 0');
      // Values in the last, incomplete multiple of `bound` are drawn again: they would favour small results.
      const limit = WIDE - (WIDE % bound);
      for (;;) {
        const value = draw53();
        if (value < limit) return value % bound;
      }
    },
    bytes,
  };
}
