import { SeededRandom } from '@remora/base';
import { describe, expect, test } from 'vitest';
import { ByteMarks } from './byte-marks.ts';

describe('bytes under way', () => {
  test('count and sum are those of a plain list, whatever is added, done with and cleared', () => {
    for (let seed = 1; seed <= 20; seed++) {
      const random = new SeededRandom(seed);
      const marks = new ByteMarks();
      let plain: { last: number; bytes: number }[] = [];
      let next = 1;
      for (let step = 0; step < 400; step++) {
        for (let n = random.int(12); n > 0; n--) {
          next += 1 + random.int(3);
          const bytes = random.int(1000);
          marks.add(next, bytes);
          plain.push({ last: next, bytes });
        }
        if (random.int(50) === 0) {
          marks.clear();
          plain = [];
        } else if (random.int(3) > 0) {
          const upTo = random.int(10) === 0 ? next : (plain[random.int(12)]?.last ?? 0) + random.int(2);
          marks.freeTo(upTo);
          plain = plain.filter(({ last }) => last > upTo);
        }
        const bytes = plain.reduce((sum, mark) => sum + mark.bytes, 0);
        expect({ count: marks.count, bytes: marks.bytes }, `seed ${seed}, step ${step}`).toEqual({
          count: plain.length,
          bytes,
        });
      }
    }
  });
});
