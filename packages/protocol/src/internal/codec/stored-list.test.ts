import { expect, test } from 'vitest';
import { encodeStored, type StoredFormat } from './stored.ts';
import { StoredList } from './stored-list.ts';

const FORMAT: StoredFormat = { what: 'a list', version: 3, fields: 1 };

test('at any time the row is that of all items at once, and each of them is read by itself', () => {
  const list = new StoredList(FORMAT);
  const items: unknown[] = [];
  expect(list.row()).toEqual(encodeStored(FORMAT, [[]]));
  for (let i = 0; i < 300; i++) {
    const item = [`item ${i}`, i * 1_000.5, Buffer.alloc(i % 40, i), null];
    items.push(item);
    list.add(item, (out, value) => out.value(value));
    if (i < 20 || i % 60 === 0) expect(list.row().toString('hex')).toBe(encodeStored(FORMAT, [items]).toString('hex'));
  }
  expect(list.count).toBe(300);
  expect(items.map((_, i) => list.item(i))).toEqual(items);
  expect(() => list.item(300)).toThrow('an item of the list');
});

test('an item is copied from another list, which may grow afterwards', () => {
  const [from, to] = [new StoredList(FORMAT), new StoredList(FORMAT)];
  for (let i = 0; i < 40; i++) {
    from.add(`item ${i}`, (out, value) => out.value(value));
    to.addFrom(from, i, (out, source, place) => out.packedPart(source, place.from, place.to));
    to.addFrom(from, 0, (out, source, place) => out.packedPart(source, place.from, place.to));
  }
  const copied = Array.from({ length: 40 }, (_, i) => [`item ${i}`, 'item 0']).flat();
  expect(to.row()).toEqual(encodeStored(FORMAT, [copied]));
  expect(() => to.addFrom(from, 40, () => {})).toThrow('an item of the list');
});

test('a format with other fields beside the list is none of these', () => {
  expect(() => new StoredList({ ...FORMAT, fields: 2 })).toThrow('only field');
});
