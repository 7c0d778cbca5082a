import { randomBytes, randomFillSync } from 'node:crypto';
import { assert } from '../assert.ts';
import type { Random } from '../random.ts';

const POOL_BYTES = 4096;
const WIDE = 2 ** 53;

/** The system's cryptographic generator, drawn from in blocks so that one number costs no system call. */
export function nodeRandom(): Random {
  const pool = Buffer.alloc(POOL_BYTES);
  let used = POOL_BYTES;

  function draw53(): number {
    if (used + 8 > POOL_BYTES) {
      randomFillSync(pool);
      used = 0;
    }
    const high = pool.readUInt32LE(used) >>> 11;
    const low = pool.readUInt32LE(used + 4);
    used += 8;
    return high * 2 ** 32 + low;
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
    bytes: (length) => randomBytes(length),
  };
}
