import { compareBytes } from '@remora/base';
import { kvRoutingKey } from '@remora/protocol';
import type { admin } from '@remora/protocol/remora';
import { Listing, type RangeListOptions } from 'remora/admin';
import { describe, expect, test } from 'vitest';
import { neighbours, splitTarget } from './range-targets.ts';

const key = (text: string) => kvRoutingKey(Buffer.from(text));

function range(id: number, start: Buffer, end: Buffer): admin.Range {
  return {
    ...{ id, start, end, confVersion: 1, version: 1, leaderNode: 1, replicas: [], revisionSource: 'master' },
    ...{ state: undefined, load: undefined },
  };
}

/** All keys but those from x on. */
const RANGES = [range(2, Buffer.of(), key('m')), range(9, key('m'), key('t')), range(5, key('t'), key('x'))];

const client = {
  range: async (id: number) => RANGES.find((each) => each.id === id) ?? Promise.reject(new Error(`no range ${id}`)),
  ranges: ({ from = Buffer.of() }: RangeListOptions = {}) => {
    const items = RANGES.filter(({ end }) => compareBytes(end, from) > 0).slice(0, 1);
    return new Listing<admin.Range>(async () => ({ items, cursor: undefined }));
  },
};

describe('what is to be split', () => {
  test.each([
    { name: 'the named range, in the middle', rangeId: 9, at: undefined, id: 9 },
    { name: 'the range that has the key', rangeId: undefined, at: 'orders', id: 9 },
    { name: 'the named range at its key', rangeId: 2, at: 'a', id: 2 },
  ])('is $name', async ({ rangeId, at, id }) => {
    const found = await splitTarget(client, rangeId, at === undefined ? undefined : key(at));
    expect(found.id).toBe(id);
  });

  test.each([
    { name: 'nothing', rangeId: undefined, at: undefined, says: 'no range given; give a range id, a --key, or both' },
    {
      name: 'a key of another range',
      rangeId: 2,
      at: 'orders',
      says: 'key:orders is not in range 2 (from - to key:m); range 9 contains it',
    },
    {
      name: 'the first key of a range',
      rangeId: 9,
      at: 'm',
      says: 'range 9 already starts at key:m; choose a later key',
    },
    { name: 'a key that no range has', rangeId: undefined, at: 'x', says: 'no range contains key:x' },
    { name: 'a range that there is not', rangeId: 77, at: undefined, says: 'no range 77' },
  ])('is not $name: the refusal says what would be right', async ({ rangeId, at, says }) => {
    await expect(splitTarget(client, rangeId, at === undefined ? undefined : key(at))).rejects.toThrow(says);
  });
});

describe('what is to be merged', () => {
  test.each([
    [2, 9],
    [9, 2],
  ])('%i and %i: the one with the smaller keys goes on', async (one, other) => {
    expect(await neighbours(client, one, other)).toMatchObject({ target: { id: 2 }, source: { id: 9 } });
  });

  test.each([
    { pair: [2, 5], says: 'range 2 spans - to key:m, and range 5 spans key:t to key:x' },
    { pair: [9, 9], says: 'only adjacent ranges can be merged' },
    { pair: [2, 77], says: 'no range 77' },
  ])('$pair are not: the refusal says why', async ({ pair, says }) => {
    await expect(neighbours(client, pair[0] ?? 0, pair[1] ?? 0)).rejects.toThrow(says);
  });
});
