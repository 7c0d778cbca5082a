// What holds for any fields and any octets (C1, C2 of header-decoder.ts).
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { HeaderDecoder } from './header-decoder.ts';
import { encodeFields } from './header-encoder.ts';
import { type DecodedField, fieldBytes, type HeaderField, HpackError } from './header-field.ts';
import { STATIC_FIELDS } from './static-table.ts';

const LIMITS = { tableBytesMax: 4_096, listBytesMax: 8_192, fieldsMax: 64 };

const OCTETS = fc.uint8Array({ maxLength: 64 }).map((octets) => Buffer.from(octets).toString('latin1'));
const TEXT = fc.string({ unit: fc.constantFrom(...'abcdefgh-/:0129 %ABC~'), maxLength: 40 });
const FIELD: fc.Arbitrary<HeaderField> = fc.oneof(
  fc.record({ name: fc.oneof(TEXT, OCTETS), value: fc.oneof(TEXT, OCTETS) }),
  fc.record({ name: fc.constantFrom(...STATIC_FIELDS.map(({ name }) => name)), value: TEXT }),
  fc.constantFrom(...STATIC_FIELDS).map(({ name, value }) => ({ name, value })),
);

function plain(list: readonly DecodedField[] | undefined): readonly HeaderField[] | undefined {
  return list?.map(({ name, value }) => ({ name, value }));
}

test('any fields are decoded as they were encoded', () => {
  const decoder = new HeaderDecoder({ ...LIMITS, listBytesMax: 1_000_000 });
  fc.assert(
    fc.property(fc.array(FIELD, { maxLength: 20 }), (fields) => {
      const block = encodeFields(fields);
      expect(plain(decoder.decode(block, 0, block.length))).toEqual(fields);
      // Once more: now perhaps from the cache.
      expect(plain(decoder.decode(block, 0, block.length))).toEqual(fields);
    }),
  );
});

/** Blocks in which most octets mean something: representations of every kind, with indices that exist or nearly. */
const REPRESENTATION = fc.oneof(
  fc.integer({ min: 0x80, max: 0xff }).map((octet) => Buffer.from([octet])),
  fc.record({ name: TEXT, value: fc.oneof(TEXT, OCTETS) }).map(({ name, value }) => added(name, value)),
  fc
    .record({ index: fc.integer({ min: 1, max: 62 }), value: TEXT })
    .map(({ index, value }) =>
      Buffer.concat([Buffer.from([0x40 | index, value.length]), Buffer.from(value, 'latin1')]),
    ),
  FIELD.map((field) => encodeFields([field])),
  fc.integer({ min: 0x20, max: 0x3f }).map((octet) => Buffer.from([octet])),
  fc.uint8Array({ maxLength: 12 }).map((octets) => Buffer.from(octets)),
);
const BLOCK = fc.oneof(
  fc.array(REPRESENTATION, { maxLength: 12 }).map((parts) => Buffer.concat(parts)),
  fc.uint8Array({ maxLength: 200 }).map((octets) => Buffer.from(octets)),
);

function added(name: string, value: string): Buffer {
  const [head, lengths] = [Buffer.from([0x40, name.length]), Buffer.from([value.length])];
  return Buffer.concat([head, Buffer.from(name, 'latin1'), lengths, Buffer.from(value, 'latin1')]);
}

test('any octets are decoded within the limits, or refused by an HpackError', () => {
  const counts = { lists: 0, tooLarge: 0, errors: 0 };
  fc.assert(
    fc.property(fc.array(BLOCK, { minLength: 1, maxLength: 20 }), (blocks) => {
      const limits = { tableBytesMax: 512, listBytesMax: 160, fieldsMax: 4 };
      const decoder = new HeaderDecoder(limits);
      decoder.settingsAcknowledged();
      decoder.decode(Buffer.from('3fe103', 'hex'), 0, 3);
      for (const block of blocks) {
        try {
          const list = decoder.decode(block, 0, block.length);
          counts[list === undefined ? 'tooLarge' : 'lists']++;
          expect(list?.length ?? 0).toBeLessThanOrEqual(limits.fieldsMax);
          expect(list?.reduce((sum, field) => sum + fieldBytes(field), 0) ?? 0).toBeLessThanOrEqual(
            limits.listBytesMax,
          );
        } catch (error) {
          if (!(error instanceof HpackError)) throw error;
          counts.errors++;
        }
        expect(decoder.tableBytes).toBeLessThanOrEqual(limits.tableBytesMax);
      }
    }),
    { seed: 29, numRuns: 2_000 },
  );
  expect(Math.min(counts.lists, counts.tooLarge, counts.errors)).toBeGreaterThan(100);
});

/** Size updates, and fields behind them. */
const PARTS = fc.tuple(
  fc.constantFrom('', '', '', '20', '3f45', '3fe11f', '203fe11f').map((hex) => Buffer.from(hex, 'hex')),
  BLOCK.filter(([first = 0]) => (first & 0xe0) !== 0x20),
);
/** References in front of the fields make a block too long for the cache. */
const UNCACHED = Buffer.alloc(150, 0x82);

test('any course of blocks is decoded with the cache as without', () => {
  const limits = { ...LIMITS, listBytesMax: 1_000_000, fieldsMax: 10_000 };
  let hits = 0;
  fc.assert(
    fc.property(
      fc.array(PARTS, { minLength: 1, maxLength: 5 }),
      fc.array(fc.nat(4), { maxLength: 30 }),
      (parts, order) => {
        const cached = new HeaderDecoder(limits);
        const cold = new HeaderDecoder(limits);
        const lists = new Set<unknown>();
        for (const index of order) {
          const [updates, fields] = parts[index % parts.length] ?? [UNCACHED, UNCACHED];
          const block = Buffer.concat([updates, fields]);
          const long = Buffer.concat([updates, UNCACHED, fields]);
          let expected: readonly DecodedField[] = [];
          try {
            expected = cold.decode(long, 0, long.length)?.slice(UNCACHED.length) ?? [];
          } catch (error) {
            expect(error).toBeInstanceOf(HpackError);
            expect(() => cached.decode(block, 0, block.length)).toThrow(HpackError);
            return;
          }
          const list = cached.decode(block, 0, block.length);
          expect(list).toEqual(expected);
          expect(cached.tableBytes).toBe(cold.tableBytes);
          if (lists.has(list)) hits++;
          lists.add(list);
        }
      },
    ),
    { seed: 29, numRuns: 1_000 },
  );
  expect(hits).toBeGreaterThan(100);
});

describe('bombs', () => {
  test('many references to one large entry end at the limit of the list', () => {
    const decoder = new HeaderDecoder(LIMITS);
    const entry = Buffer.concat([Buffer.from('4001617f811e', 'hex'), Buffer.alloc(3_968, 'v')]);
    expect(decoder.decode(entry, 0, entry.length)).toHaveLength(1);
    const bomb = Buffer.alloc(1_000_000, 0xbe);
    const before = process.memoryUsage().heapUsed;
    expect(decoder.decode(bomb, 0, bomb.length)).toBeUndefined();
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(16_000_000);
    expect(decoder.decode(bomb, 0, 2)).toHaveLength(2);
  });

  test('many small literals end at the number of fields', () => {
    const decoder = new HeaderDecoder({ ...LIMITS, listBytesMax: 10_000_000 });
    const bomb = Buffer.alloc(300_000, Buffer.from('00016100', 'hex'));
    expect(decoder.decode(bomb, 0, bomb.length)).toBeUndefined();
  });
});
