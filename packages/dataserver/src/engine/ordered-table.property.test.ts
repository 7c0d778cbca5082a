import { SeededRandom } from '@remora/base';
import { expect, it, vi } from 'vitest';
import { BTree } from './b-tree.ts';
import { OrderedTable, type Picture } from './ordered-table.ts';

function show(picture: Picture): string[] {
  return [...picture.entries()].map(([name, cell]) => `${name}=${cell.value?.[0] ?? 'deleted'}`);
}

function showModel(model: ReadonlyMap<string, number>): string[] {
  return [...model].sort(([a], [b]) => (a < b ? -1 : 1)).map(([k, v]) => `${k}=${v < 0 ? 'deleted' : v}`);
}

it('a table of several levels equals its model, and a picture never changes', () => {
  for (let seed = 1; seed <= 6; seed++) {
    const random = new SeededRandom(seed);
    const table = new OrderedTable();
    const model = new Map<string, number>();
    const pictures: { picture: Picture; expected: string[] }[] = [];
    for (let step = 0; step < 8000; step++) {
      const name = String(random.int(3000)).padStart(4, '0');
      const what = random.int(1000);
      if (what < 2) {
        pictures.push({ picture: table.picture(), expected: showModel(model) });
      } else if (what < 4) {
        const end = String(Number(name) + random.int(400)).padStart(4, '0');
        table.removeRange({ start: name, end });
        for (const key of [...model.keys()]) if (key >= name && key < end) model.delete(key);
      } else if (what < 350) {
        expect(table.remove(name)).toBe(model.delete(name));
      } else {
        const value = random.int(256);
        table.set(name, what < 450 ? undefined : Uint8Array.of(value));
        model.set(name, what < 450 ? -1 : value);
      }
    }
    table.live().checkValid();
    expect(show(table.live())).toEqual(showModel(model));
    expect(table.keys).toBe(model.size);
    expect(table.bytes).toBe([...model.values()].reduce((sum, value) => sum + 4 + (value < 0 ? 0 : 1), 0));
    expect(pictures.length).toBeGreaterThan(0);
    for (const { picture, expected } of pictures) expect(show(picture), `seed ${seed}`).toEqual(expected);
  }
});

it('one change places at most 256 names, although thousands wait (T4)', () => {
  const table = new OrderedTable();
  const placed = vi.spyOn(BTree.prototype, 'set');
  let most = 0;
  for (let i = 0; i < 20_000; i++) {
    placed.mockClear();
    table.set(String((i * 7_919) % 20_000).padStart(5, '0'), Uint8Array.of(i % 256));
    most = Math.max(most, placed.mock.calls.length);
  }
  placed.mockRestore();
  expect(most).toBe(256);
  expect([...table.live().keys()]).toEqual(Array.from({ length: 20_000 }, (_, i) => String(i).padStart(5, '0')));
});
