import { equalBytes } from '@remora/base';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Outcome } from './outcome-codec.ts';
import { hashOfId, OutcomeEntries } from './outcome-entries.ts';

const outcome = fc.oneof(
  fc
    .record({ revision: fc.nat(), result: fc.constant({ type: 'noop' as const }) })
    .map((one) => ({ ok: true, ...one })),
  fc.record({ revision: fc.nat(), message: fc.string({ maxLength: 300 }) }).map((one) => ({
    ...one,
    ok: false,
    code: 'INVALID_ARGUMENT' as const,
  })),
) as fc.Arbitrary<Outcome>;
const requestId = fc.string({ unit: 'grapheme', maxLength: 120 });
const deadlineMs = fc.oneof(
  fc.nat(300),
  fc.nat(70_000),
  fc.maxSafeInteger().map(Math.abs),
  fc.double({ min: 0, max: 1e12, noNaN: true }),
);

test('an outcome that is copied with another deadline has the bytes of one that was added with it', () => {
  const entry = fc.record({ requestId, deadlineMs, outcome });
  fc.assert(
    fc.property(fc.array(fc.tuple(entry, deadlineMs), { minLength: 1, maxLength: 20 }), (given) => {
      const [from, copied, added] = [new OutcomeEntries(), new OutcomeEntries(), new OutcomeEntries()];
      for (const [one] of given) from.add(one, hashOfId(one.requestId));
      given.forEach(([one, newMs], at) => {
        copied.addFrom(from, at, newMs);
        added.add({ ...one, deadlineMs: newMs }, hashOfId(one.requestId));
      });
      expect(equalBytes(copied.row(), added.row())).toBe(true);
      expect([...copied]).toEqual([...added]);
      expect(copied.hashes).toEqual(added.hashes);
      expect(copied.deadlines).toEqual(added.deadlines);
    }),
  );
});
