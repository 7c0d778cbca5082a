import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { TransientMap } from './transient-map.ts';

describe('TransientMap', () => {
  test('what stays while the ring comes round is still found, and ends when it is deleted', () => {
    const map = new TransientMap<{ readonly n: number }>();
    map.add(1, { n: 1 });
    for (let id = 2; id < 5_000; id++) {
      map.add(id, { n: id });
      expect(map.delete(id)).toBe(true);
    }
    expect(map.get(1)).toEqual({ n: 1 });
    expect(map.size).toBe(1);
    expect(map.delete(1)).toBe(true);
    expect(map.delete(1)).toBe(false);
    expect(map.size).toBe(0);
  });

  test('values come in the order of their ids', () => {
    const map = new TransientMap<{ readonly n: number }>();
    for (const id of [700, 3, 259, 515, 1]) map.add(id, { n: id });
    expect(map.values().map(({ n }) => n)).toEqual([1, 3, 259, 515, 700]);
  });

  test('a visitor may delete what it visits and everything else', () => {
    const map = new TransientMap<{ readonly n: number }>();
    for (let id = 0; id < 600; id++) map.add(id, { n: id });
    let visits = 0;
    map.forEach(() => {
      visits++;
      for (const { n } of map.values()) map.delete(n);
    });
    expect(visits).toBeGreaterThan(0);
    expect(map.size).toBe(0);
  });

  test('it behaves like a map, whatever comes and goes', () => {
    const step = fc.oneof(
      { weight: 6, arbitrary: fc.record({ type: fc.constant('add' as const), gap: fc.integer({ min: 1, max: 300 }) }) },
      { weight: 4, arbitrary: fc.record({ type: fc.constant('delete' as const), nth: fc.nat() }) },
      { weight: 1, arbitrary: fc.record({ type: fc.constant('clear' as const) }) },
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 900, size: 'max' }), (steps) => {
        const [map, model] = [new TransientMap<{ readonly id: number }>(), new Map<number, { readonly id: number }>()];
        let id = 0;
        for (const each of steps) {
          if (each.type === 'add') {
            id += each.gap;
            map.add(id, { id });
            model.set(id, { id });
          } else if (each.type === 'clear') {
            map.clear();
            model.clear();
          } else {
            const victim = [...model.keys()][each.nth % Math.max(1, model.size)] ?? -2;
            expect(map.has(victim)).toBe(model.has(victim));
            expect(map.delete(victim)).toBe(model.delete(victim));
          }
          expect(map.size).toBe(model.size);
        }
        expect(map.values()).toEqual([...model.values()]);
      }),
      { numRuns: 30 },
    );
  });
});
