import { compareBytes } from '@remora/base';
import { expect, test } from 'vitest';
import { outcomePageKey, stateKey, txnRowKey } from './keys.ts';

test("the state of a range is the last of its own rows, so that it is in the last batch of a snapshot's", () => {
  for (const key of [outcomePageKey(7, 2 ** 40), txnRowKey(7, 'part', 'zz/9'), txnRowKey(7, 'record', 'zz')]) {
    expect(compareBytes(key, stateKey(7))).toBeLessThan(0);
    expect(compareBytes(key, stateKey(6))).toBeGreaterThan(0);
  }
});
