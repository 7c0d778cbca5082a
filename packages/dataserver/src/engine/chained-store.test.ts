import { asBuffer, type Bytes, EMPTY_BYTES, InvariantError, silentLogger, utf8 } from '@remora/base';
import { describe, expect, it } from 'vitest';
import { MemoryMedium, MemoryStore } from '../testing/memory-store.ts';
import { openStore } from './open-store.ts';
import type { PersistentStore, StoreBatch } from './store.ts';
import { StoreDamagedError } from './store-errors.ts';

const EVERYTHING = { start: EMPTY_BYTES, end: EMPTY_BYTES, reverse: false };
const open = (store: PersistentStore): Promise<PersistentStore> => openStore(store, 'a place', silentLogger);

type Change = (batch: StoreBatch) => void;

/** A store that notes the changes of each batch, in the order in which they are written. */
function noting(written: (readonly Change[])[]): MemoryStore {
  const store = new MemoryStore(new MemoryMedium());
  const makeBatch = store.batch.bind(store);
  store.batch = () => {
    const batch = makeBatch();
    const changes: Change[] = [];
    const also = (change: Change): void => {
      changes.push(change);
      change(batch);
    };
    return {
      put: (key, value) => also((to) => to.put(key, value)),
      delete: (key) => also((to) => to.delete(key)),
      write: async () => {
        written.push(changes);
        await batch.write();
      },
    };
  };
  return store;
}

/** A store to which only the batches were written that `there` says. */
async function storeOf(written: readonly (readonly Change[])[], there: (i: number) => boolean): Promise<MemoryStore> {
  const store = new MemoryStore(new MemoryMedium());
  for (const changes of written.filter((_, i) => there(i))) {
    const batch = store.batch();
    for (const change of changes) change(batch);
    await batch.write();
  }
  return store;
}

async function put(store: PersistentStore, key: string, value: string): Promise<void> {
  const batch = store.batch();
  batch.put(utf8(key), utf8(value));
  await batch.write();
}

async function rowsOf(store: Pick<PersistentStore, 'cursor'>, reverse = false): Promise<string[]> {
  const rows = await store.cursor({ ...EVERYTHING, reverse }).next(99);
  return rows.map(({ key, value }) => `${asBuffer(key)}=${asBuffer(value)}`);
}

describe('a store with marks of its batches', () => {
  it('opens with the first ones of its batches, however many, and with no others', async () => {
    const written: (readonly Change[])[] = [];
    const store = await open(noting(written));
    const rows = [[], []] as string[][]; // the format's batch changes none
    for (let i = 0; i < 6; i++) {
      await put(store, `k${i % 2}`, `${i}`);
      rows.push(await rowsOf(store));
    }
    expect(written).toHaveLength(7);
    for (let there = 0; there < 2 ** written.length; there++) {
      const left = await storeOf(written, (i) => (there & (1 << i)) !== 0);
      const count = Math.log2(there + 1);
      const opened = open(left);
      if (Number.isInteger(count)) expect(await rowsOf(await opened)).toEqual(rows[count]);
      else await expect(opened, there.toString(2)).rejects.toThrow(StoreDamagedError);
    }
  });

  it.each([
    { gone: [3], says: 'batch 3 written to it is missing' },
    { gone: [2, 3], says: 'one or more of the batches 2 to 3 written to it is missing' },
    { gone: [0], says: 'the first batch written to it is missing' },
  ])('says that $gone are gone', async ({ gone, says }) => {
    const written: (readonly Change[])[] = [];
    const store = await open(noting(written));
    for (let i = 1; i <= 4; i++) await put(store, 'k', `${i}`);
    await expect(open(await storeOf(written, (i) => !gone.includes(i)))).rejects.toThrow(says);
  });

  it('is refused when its mark is gone', async () => {
    const medium = new MemoryMedium();
    await open(new MemoryStore(medium));
    for (const name of [...medium.rows.keys()]) if (name !== '') medium.rows.delete(name);
    await expect(open(new MemoryStore(medium))).rejects.toThrow('the mark of the last batch');
  });

  it('goes on with its numbers after it was opened again', async () => {
    const written: (readonly Change[])[] = [];
    const inner = noting(written);
    for (let starts = 0; starts < 3; starts++) await put(await open(inner), 'k', `${starts}`);
    await expect(open(await storeOf(written, (i) => i !== 2))).rejects.toThrow('batch 2 written');
    expect(await rowsOf(await open(inner))).toEqual(['k=2']);
  });

  it('gives its marks to no reader, and takes no row among them', async () => {
    const store = await open(new MemoryStore(new MemoryMedium()));
    await put(store, 'k', 'v');
    for (const reader of [store, store.snapshot()]) {
      for (const reverse of [false, true]) expect(await rowsOf(reader, reverse)).toEqual(['k=v']);
    }
    const mark: Bytes = Buffer.from([0xff, 1]);
    expect(() => store.batch().put(mark, EMPTY_BYTES)).toThrow(InvariantError);
    expect(() => store.batch().delete(mark)).toThrow(InvariantError);
  });

  it('writes a batch when the one before it is written, and none after one that failed', async () => {
    const inner = new MemoryStore(new MemoryMedium());
    const store = await open(inner);
    const ends: ((error?: Error) => void)[] = [];
    inner.batch = () => ({
      put() {},
      delete() {},
      write: () =>
        new Promise<void>((resolve, reject) => {
          ends.push((error) => (error === undefined ? resolve() : reject(error)));
        }),
    });
    const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
    const outcomes = ['a', 'b', 'c'].map((key) => put(store, key, '').then(() => 'written', String));
    await turn();
    expect(ends).toHaveLength(1);
    ends[0]?.();
    await turn();
    expect(ends).toHaveLength(2);
    ends[1]?.(new Error('disk full'));
    expect(await Promise.all(outcomes)).toEqual(['written', 'Error: disk full', 'Error: disk full']);
    expect(ends).toHaveLength(2);
  });
});
