import { type Bytes, EMPTY_BYTES, silentLogger, utf8 } from '@remora/base';
import { beforeEach, describe, expect, it } from 'vitest';
import { CONTRACT_RESIDENT, span, textRows, turningClock } from '../../test/support/engine-contract.ts';
import { MemoryMedium, MemoryStore } from '../testing/memory-store.ts';
import { CheckedStore } from './checked-store.ts';
import { nameOf } from './latin1.ts';
import { OverlayEngine } from './overlay-engine.ts';
import { openRow, sealRow } from './row-checksum.ts';
import { StoreDamagedError } from './store-errors.ts';

const EVERYTHING = { start: EMPTY_BYTES, end: EMPTY_BYTES, reverse: false };

describe('the checksum of a row', () => {
  it.each([
    { key: 'k', value: '' },
    { key: 'k', value: 'v' },
    { key: 'a longer key', value: 'a value of some length' },
    { key: '', value: 'the row of the empty key' },
  ])('fits "$key" = "$value", and no longer when any one bit of either or of itself is another', ({ key, value }) => {
    const sealed = sealRow(utf8(key), utf8(value));
    expect(openRow(utf8(key), sealed)).toEqual(Buffer.from(value));
    for (const flipped of eachFlip(sealed)) expect(openRow(utf8(key), flipped)).toBeUndefined();
    for (const flipped of eachFlip(utf8(key))) expect(openRow(flipped, sealed)).toBeUndefined();
  });

  it('does not fit a row that is cut short, or whose key gave its last byte to the value', () => {
    const sealed = sealRow(utf8('key'), utf8('value'));
    for (let length = 0; length < sealed.length; length++) {
      expect(openRow(utf8('key'), sealed.subarray(0, length))).toBeUndefined();
    }
    expect(openRow(utf8('ke'), Buffer.concat([utf8('y'), sealed]))).toBeUndefined();
  });
});

describe('a store with checksums', () => {
  let medium: MemoryMedium;
  let store: CheckedStore;
  beforeEach(async () => {
    medium = new MemoryMedium();
    store = new CheckedStore(new MemoryStore(medium), 'a place');
    const batch = store.batch();
    for (const key of ['k1', 'k2', 'r1']) batch.put(utf8(key), utf8(`of ${key}`));
    await batch.write();
  });

  const damages: readonly { readonly what: string; readonly key: string; readonly damage: (sealed: Bytes) => void }[] =
    [
      { what: 'a bit of its value flipped', key: 'k2', damage: (sealed) => set('k2', flip(sealed, 0)) },
      {
        what: 'a bit of its checksum flipped',
        key: 'k2',
        damage: (sealed) => set('k2', flip(sealed, sealed.length - 1)),
      },
      { what: 'it is cut short', key: 'k2', damage: (sealed) => set('k2', sealed.subarray(0, 3)) },
      {
        what: 'a bit of its key flipped',
        key: 'k3',
        damage: (sealed) => {
          medium.rows.delete('k2');
          set('k3', sealed);
        },
      },
    ];
  const set = (key: string, sealed: Bytes): void => void medium.rows.set(key, sealed);
  const stored = (key: string): Bytes => medium.rows.get(nameOf(utf8(key))) ?? EMPTY_BYTES;

  it.each(damages)('does not hand out a row when $what: to a get, a cursor or a snapshot', async ({ key, damage }) => {
    damage(stored('k2'));
    const snapshot = store.snapshot();
    const message = `in a place: the checksum of row ${Buffer.from(key).toString('hex')} is wrong`;
    expect(() => store.get(utf8(key))).toThrow(message);
    expect(() => snapshot.get(utf8(key))).toThrow(message);
    for (const reader of [store, snapshot]) {
      for (const reverse of [false, true]) {
        await expect(reader.cursor({ ...EVERYTHING, reverse }).next(9)).rejects.toThrow(message);
      }
    }
    expect(store.get(utf8('k1'))).toEqual(Buffer.from('of k1'));
  });

  it.each(['get', 'scan', 'get of a view', 'scan of a view', 'clearing'])(
    'ends an engine at a %s of a damaged row',
    async (read) => {
      const failures: Error[] = [];
      const engine = await OverlayEngine.open(store, {
        options: { resident: CONTRACT_RESIDENT },
        clock: turningClock((fn) => void setImmediate(fn)),
        logger: silentLogger,
        onFailure: (error) => void failures.push(error),
      });
      set('k2', flip(stored('k2'), 1));
      expect(textRows([{ key: utf8('k1'), value: engine.get(utf8('k1')) ?? EMPTY_BYTES }])).toEqual(['k1=of k1']);
      expect(failures).toEqual([]);
      const reads: Record<string, () => unknown> = {
        get: () => engine.get(utf8('k2')),
        scan: () => engine.scan(span('k', 'l')),
        'get of a view': () => engine.view().get(utf8('k2')),
        'scan of a view': () => readToEnd(engine.view().scan(span('k', 'l'))),
        clearing: () => engine.clearSpan(span('k', 'l')),
      };
      await expect(async () => reads[read]?.()).rejects.toThrow(StoreDamagedError);
      expect(failures).toEqual([expect.any(StoreDamagedError)]);
      await expect(engine.checkpoint()).rejects.toThrow(StoreDamagedError);
    },
  );
});

async function readToEnd(rows: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of rows);
}

function flip(bytes: Bytes, at: number, bit = 0): Buffer {
  const flipped = Buffer.from(bytes);
  flipped[at] = (flipped[at] ?? 0) ^ (1 << bit);
  return flipped;
}

function* eachFlip(bytes: Bytes): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at++) for (let bit = 0; bit < 8; bit++) yield flip(bytes, at, bit);
}
