import { asBuffer, EMPTY_BYTES, SeededRandom } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import { beforeEach, describe, expect, it } from 'vitest';
import { MemoryMedium } from '../../../../packages/dataserver/src/testing/memory-store.ts';
import { DiskStall } from '../../common/env/process-disk.ts';
import { SimStore } from './sim-store.ts';
import { StoreDamage } from './store-damage.ts';

const key = (text: string): Buffer => Buffer.from(text);

describe('a bit that flipped in a stored row', () => {
  let medium: MemoryMedium;
  let damage: StoreDamage | undefined;
  let store: SimStore;
  beforeEach(() => {
    medium = new MemoryMedium();
    for (const name of ['a', 'b', 'c']) medium.rows.set(name, key(`of ${name}`));
    damage = StoreDamage.inflict(medium, { place: 4, bit: 8 });
    store = new SimStore({
      medium,
      ...{ clock: new ManualClock(), random: new SeededRandom(1), stall: new DiskStall(), latencyMs: () => 0 },
      takeFailure: () => undefined,
      damage: () => damage,
    });
  });
  const read = (): string[] => ['a', 'b', 'c'].map((name) => asBuffer(store.get(key(name)) ?? EMPTY_BYTES).toString());

  it('is read through the store and nowhere else', () => {
    expect([damage?.stands, damage?.seen]).toEqual([true, false]);
    expect(read()).toEqual(['of a', 'og b', 'of c']);
    expect([...medium.all()].map(({ value }) => asBuffer(value).toString())).toEqual(['of a', 'of b', 'of c']);
    expect(damage).toMatchObject({ stands: true, seen: true, where: 'row 62' });
  });

  it('is read in a picture that was taken before the row was written again, but not after', () => {
    const before = store.snapshot();
    medium.rows.set('b', key('new b'));
    expect(damage?.stands).toBe(false);
    expect(read()).toEqual(['of a', 'new b', 'of c']);
    expect(before.get(key('b'))).toEqual(key('og b'));
  });

  it('needs a row', () => {
    expect(StoreDamage.inflict(new MemoryMedium(), { place: 4, bit: 8 })).toBeUndefined();
  });
});
