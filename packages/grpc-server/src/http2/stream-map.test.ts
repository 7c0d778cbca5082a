import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Stream } from './stream.ts';
import { StreamMap } from './stream-map.ts';

test('it is a map of streams, whatever their ids are', () => {
  const id = fc.oneof(
    fc.integer({ min: 0, max: 40 }).map((n) => 2 * n + 1),
    fc.integer({ min: 0, max: 40 }).map((n) => 64 * n + 1),
    fc.integer({ min: 2 ** 30, max: 2 ** 30 - 1 + 2 ** 30 }),
  );
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.constantFrom('add', 'delete', 'shrink'), id), { maxLength: 200 }), (steps) => {
      const map = new StreamMap();
      const model = new Map<number, Stream>();
      for (const [what, key] of steps) {
        if (what === 'shrink') map.shrink();
        else if (what === 'delete' || model.has(key)) {
          map.delete(key);
          model.delete(key);
        } else {
          const stream = { id: key } as Stream;
          map.add(stream);
          model.set(key, stream);
        }
        expect(map.size).toBe(model.size);
        expect(new Set(map.values())).toEqual(new Set(model.values()));
      }
      for (const [, key] of steps) expect(map.get(key)).toBe(model.get(key));
    }),
    { numRuns: 500 },
  );
});
