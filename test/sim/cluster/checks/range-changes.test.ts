import type { RangeDescriptor } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { DescriptorHistory } from './range-changes.ts';

function range(rangeId: number, [start, end]: readonly [string, string], version: number): RangeDescriptor {
  return {
    ...{ rangeId, start: Buffer.from(start), end: Buffer.from(end), epoch: { confVersion: 1, version } },
    ...{ replicas: [], revisionSource: 'master' },
  };
}

function see(...ranges: readonly RangeDescriptor[]): void {
  const history = new DescriptorHistory();
  for (const one of ranges) history.see(one);
}

const WHOLE = range(2, ['', ''], 1);
const LEFT = range(2, ['', 'm'], 2);
const RIGHT = range(3, ['m', ''], 2);

describe('descriptors over time', () => {
  test('a good run: a split, its parts in any order, another one, and a merge, of which some hear late', () => {
    const again = [range(3, ['m', 's'], 3), range(4, ['s', ''], 3)];
    expect(() => see(WHOLE, RIGHT, WHOLE, LEFT, ...again, range(2, ['', 's'], 4), LEFT, { ...RIGHT })).not.toThrow();
  });

  const bad: readonly { readonly name: string; readonly ranges: readonly RangeDescriptor[] }[] = [
    { name: 'two ranges have a key at the same version', ranges: [LEFT, range(3, ['l', ''], 2)] },
    { name: 'a range keeps its version as it gives keys away', ranges: [WHOLE, range(2, ['', 'm'], 1)] },
    { name: 'a range is back at the version of one that took its keys', ranges: [LEFT, RIGHT, range(2, ['', ''], 2)] },
  ];
  test.each(bad)('found: $name', ({ ranges }) => expect(() => see(...ranges)).toThrow('keys have one range'));
});
