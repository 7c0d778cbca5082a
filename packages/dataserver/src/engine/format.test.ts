import { EMPTY_BYTES, silentLogger, utf8 } from '@remora/base';
import { expect, test } from 'vitest';
import { MemoryMedium, MemoryStore } from '../testing/memory-store.ts';
import { raiseFormat } from './format.ts';
import { keyOf } from './latin1.ts';
import { openStore } from './open-store.ts';
import { sealRow } from './row-checksum.ts';
import type { PersistentStore } from './store.ts';
import { StoreDamagedError } from './store-errors.ts';

/** Of the first passes of the raising; the last one is short. */
const ROWS = 2_500;

/** A store of format 2, with some rows that are easily taken for something else. */
function oldMedium(): MemoryMedium {
  const medium = new MemoryMedium();
  medium.rows.set('', utf8('2'));
  medium.rows.set('\0', utf8('the first key there can be'));
  for (let i = 0; i < ROWS; i++) medium.rows.set(`k${String(i).padStart(5, '0')}`, utf8(i % 3 === 0 ? '' : `v${i}`));
  medium.rows.set('\x04', utf8('3\n'));
  return medium;
}

/** All rows, the format's apart. */
async function rowsOf(store: PersistentStore): Promise<string[]> {
  const cursor = store.cursor({ start: keyOf('\0'), end: EMPTY_BYTES, reverse: false });
  const rows = await cursor.next(2 * ROWS);
  return rows.map(({ key, value }) => `${Buffer.from(key).toString('latin1')}=${Buffer.from(value)}`);
}

/** A store whose process dies before its `crashAt`th batch, and how many it wrote. */
function dying(medium: MemoryMedium, crashAt: number): { readonly store: MemoryStore; readonly written: () => number } {
  const store = new MemoryStore(medium);
  const makeBatch = store.batch.bind(store);
  let begun = 0;
  store.batch = () => {
    const batch = makeBatch();
    return {
      ...batch,
      write: async () => {
        if (++begun === crashAt) throw new Error('the process dies');
        await batch.write();
      },
    };
  };
  return { store, written: () => begun };
}

const raise = (store: PersistentStore): Promise<void> => raiseFormat(store, 'a place', silentLogger);
const open = (store: PersistentStore): Promise<PersistentStore> => openStore(store, 'a place', silentLogger);

test('a store of format 2 has its rows, with checksums, when it is raised; and again at the next start', async () => {
  const medium = oldMedium();
  const before = await rowsOf(new MemoryStore(medium));
  const store = new MemoryStore(medium);
  for (let starts = 0; starts < 2; starts++) {
    expect(await rowsOf(await open(store))).toEqual(before);
  }
  expect(medium.rows.get('')).toEqual(Buffer.from('4\n'));
});

test('a store of format 3 keeps its rows as they are when it is raised', async () => {
  const medium = new MemoryMedium();
  medium.rows.set('', utf8('3\n'));
  medium.rows.set('k', sealRow(utf8('k'), utf8('v')));
  for (let starts = 0; starts < 2; starts++) {
    expect(await rowsOf(await open(new MemoryStore(medium)))).toEqual(['k=v']);
  }
  expect(medium.rows.get('')).toEqual(Buffer.from('4\n'));
});

test('a store whose last batch of the raising is gone, and later ones are not, is refused', async () => {
  for (const format of [undefined, '1', '2', '3\n']) {
    const medium = new MemoryMedium();
    if (format !== undefined) medium.rows.set('', utf8(format));
    const store = await open(new MemoryStore(medium));
    const batch = store.batch();
    batch.put(utf8('k'), utf8('v'));
    await batch.write();
    if (format === undefined) medium.rows.delete('');
    else medium.rows.set('', utf8(format));
    await expect(open(new MemoryStore(medium))).rejects.toThrow(StoreDamagedError);
  }
});

test('a process that dies before any batch of the raising leaves what the next start ends', async () => {
  const before = await rowsOf(new MemoryStore(oldMedium()));
  const whole = dying(oldMedium(), 0);
  await raise(whole.store);
  expect(whole.written()).toBeGreaterThan(3);
  for (let first = 1; first <= whole.written(); first++) {
    for (let second = 1; second <= 2; second++) {
      const medium = oldMedium();
      await expect(raise(dying(medium, first).store)).rejects.toThrow('dies');
      await raise(dying(medium, second).store).catch(() => undefined);
      expect(await rowsOf(await open(new MemoryStore(medium)))).toEqual(before);
    }
  }
});

test('a bit that flips in the row of the format never makes it that of another one', async () => {
  const raised = oldMedium();
  await raise(new MemoryStore(raised));
  const half = oldMedium();
  await expect(raise(dying(half, 2).store)).rejects.toThrow('dies');
  for (const medium of [raised, half]) {
    const row = Buffer.from(medium.rows.get('') ?? EMPTY_BYTES);
    for (let bit = 0; bit < 8 * row.length; bit++) {
      const flipped = Buffer.from(row);
      flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      medium.rows.set('', flipped);
      await expect(raise(new MemoryStore(medium))).rejects.toThrow(/a place/);
    }
  }
});
