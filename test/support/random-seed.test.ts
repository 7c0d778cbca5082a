import fc from 'fast-check';
import { expect, test } from 'vitest';

function drawn(): readonly number[] {
  const numbers: number[] = [];
  fc.assert(fc.property(fc.integer(), (number) => void numbers.push(number)));
  return numbers;
}

test.skipIf(process.env.REMORA_TEST_SEED === 'random')('property tests draw the same cases each time', () => {
  expect(drawn()).toEqual(drawn());
});
