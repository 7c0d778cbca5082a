import { asBuffer, SeededRandom } from '@remora/base';
import { beforeEach, describe, expect, it } from 'vitest';
import { MemoryMedium, type RowChange } from '../../../../packages/dataserver/src/testing/memory-store.ts';
import { SimMedium } from './sim-medium.ts';

const set = (name: string, value: string): RowChange => [name, Buffer.from(value)];
const unset = (name: string): RowChange => [name, undefined];

function textOf(medium: MemoryMedium): string {
  return [...medium.all()].map(({ key, value }) => `${asBuffer(key)}=${asBuffer(value)}`).join(' ');
}

describe('batches that a store loses', () => {
  let medium: SimMedium;
  beforeEach(() => {
    medium = new SimMedium();
    medium.apply([set('a', '1'), set('b', '1')]);
    medium.apply([set('a', '2'), unset('b'), set('c', '2')]);
    medium.apply([set('a', '3'), set('b', '3')]);
    medium.apply([set('c', '4'), unset('b')]);
  });

  it.each([
    { place: 0, count: 1, rest: 'a=3 c=4', beforeOthers: true },
    { place: 1, count: 1, rest: 'a=3 c=4', beforeOthers: true },
    { place: 2, count: 1, rest: 'a=2 c=4', beforeOthers: true },
    { place: 1, count: 2, rest: 'a=1 c=4', beforeOthers: true },
    { place: 7, count: 1, rest: 'a=3 b=3 c=2', beforeOthers: false },
    { place: 2, count: 9, rest: 'a=2 c=2', beforeOthers: false },
    { place: 0, count: 9, rest: '', beforeOthers: false },
  ])('leave what the others wrote, and stay until they are lost for good: $place, $count', ({ rest, ...drawn }) => {
    const lost = medium.drawBatches(drawn);
    expect(textOf(lost?.rest() ?? new MemoryMedium())).toBe(rest);
    expect(lost).toMatchObject({ stand: true, beforeOthers: drawn.beforeOthers });
    expect(textOf(medium)).toBe('a=3 c=4');
    lost?.lose();
    expect(textOf(medium)).toBe(rest);
  });

  it('are safe once a process has opened the store, or many others were written', () => {
    const lost = medium.drawBatches({ place: 3, count: 1 });
    for (let i = 0; i < 15; i++) medium.apply([set('d', String(i))]);
    expect(lost).toMatchObject({ stand: true, beforeOthers: true });
    medium.apply([set('d', 'one more')]);
    expect(lost?.stand).toBe(false);
    const next = medium.drawBatches({ place: 3, count: 1 });
    medium.opened();
    expect(next?.stand).toBe(false);
    expect(medium.drawBatches({ place: 3, count: 1 })).toBeUndefined();
  });

  it('leave what was there as if they had never been, whichever they are', () => {
    const random = new SeededRandom(1);
    for (let run = 0; run < 200; run++) {
      const batches = Array.from({ length: 8 }, (_, i): RowChange[] =>
        ['a', 'b', 'c', 'd']
          .filter(() => random.int(2) === 0)
          .map((name) => (random.int(3) === 0 ? unset(name) : set(name, `${i}`))),
      );
      const [place, count] = [random.int(8), 1 + random.int(4)];
      const [all, others] = [new SimMedium(), new MemoryMedium()];
      for (const [i, batch] of batches.entries()) {
        all.apply(batch);
        if (i < place || i >= place + count) others.apply(batch);
      }
      expect(textOf(all.drawBatches({ place, count })?.rest() ?? new MemoryMedium())).toBe(textOf(others));
    }
  });
});

it('a medium loses no batch before it has one', () => {
  expect(new SimMedium().drawBatches({ place: 4, count: 2 })).toBeUndefined();
});
