import { type LockId, lockPrefix, namespaceSpan } from '@remora/lock';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { kvRoutingKey } from './descriptor.ts';
import { readRoutingKey, routingKeyText } from './routing-key-text.ts';

const text = fc.string({ unit: 'binary', maxLength: 12 });
const awkward = fc.constantFrom(
  '\0',
  '\\',
  '\\x00',
  ':',
  '@',
  '-',
  'ä',
  '\u202e',
  '\u200b',
  '\u2028',
  '\x1b[2J',
  'default',
);
const bytes = fc.oneof(
  fc.uint8Array({ maxLength: 12 }).map((each) => Buffer.from(each)),
  fc.array(fc.oneof(text, awkward), { maxLength: 4 }).map((parts) => Buffer.from(parts.join(''))),
);
const namespace = fc.array(fc.oneof(text, awkward), { maxLength: 3 }).map((parts) => parts.join(''));
const lock: fc.Arbitrary<LockId> = fc.record({ namespace, name: bytes });

/** Every kind of bound that ranges have, and bytes that none of them begins with. */
const key = fc.oneof(
  bytes,
  bytes.map((rest) => kvRoutingKey(rest)),
  fc.tuple(fc.constantFrom(1, 2, 9), bytes).map(([space, rest]) => Buffer.of(space, ...rest)),
  lock.map((each) => lockPrefix(each)),
  lock.map((each) => Buffer.from(namespaceSpan(each.namespace, each.name).start)),
  fc.tuple(lock, bytes).map(([each, rest]) => Buffer.concat([lockPrefix(each), rest])),
);

test('every routing key is read back from its text (RT1), which is one printable line (RT2)', () => {
  fc.assert(
    fc.property(key, (bound) => {
      const printed = routingKeyText(bound);
      expect(printed).not.toMatch(/[\p{C}\p{Zl}\p{Zp}]/u);
      expect(readRoutingKey(printed)).toMatchObject({ ok: true, key: bound });
    }),
    { numRuns: 2_000 },
  );
});

test('two routing keys never have one text (RT1)', () => {
  fc.assert(
    fc.property(key, key, (one, other) => {
      fc.pre(!one.equals(other));
      expect(routingKeyText(one)).not.toBe(routingKeyText(other));
    }),
  );
});

test('text in no form of a bound is left to be a plain key', () => {
  fc.assert(
    fc.property(fc.oneof(text, awkward), (typed) => {
      const read = readRoutingKey(typed);
      expect(read === undefined).toBe(typed !== '-' && !/^((key|lease|raw|lock):|lock@[^:]*:)/s.test(typed));
    }),
  );
});
