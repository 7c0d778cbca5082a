import { createHash } from 'node:crypto';
import { ServiceError } from '@remora/base';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decodeCommand, decodeKvOp, encodeKvOp } from '../../../test/support/part-codecs.ts';
import { BATCH, BLOCK_BATCH, COMMANDS } from '../../../test/support/samples.ts';
import type { Txn } from '../kv-types.ts';
import { decodeEntry, encodeEntry } from './entry.ts';
import { packVersioned, unpackVersioned } from './wire.ts';

/** Over the wire and back. Bytes come back as Buffers, which `toEqual` tells from Uint8Arrays: compare as text. */
function overTheWire(raw: unknown): unknown {
  return unpackVersioned(1, packVersioned(1, raw), 'sample');
}

function canonical(value: unknown): unknown {
  if (value instanceof Uint8Array) return `bytes:${Buffer.from(value).toString('hex')}`;
  if (typeof value === 'bigint') return `bigint:${value}`;
  if (Array.isArray(value)) return value.map(canonical);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, canonical(field)]));
}

describe('stored formats', () => {
  test('the format of log entries with a block is what it was: change it only together with its version', () => {
    expect(createHash('sha256').update(encodeEntry(BLOCK_BATCH)).digest('hex')).toBe(
      'a5fed878c7f31de9bd18ba93bbfb05405ad7196ae1691de0672e847b24ac247c',
    );
  });

  test('the log entry format is what it was: change it only together with its version', () => {
    expect(createHash('sha256').update(encodeEntry(BATCH)).digest('hex')).toBe(
      '7bdf74925e7003a24a475d69bf57e5321407d04e296be73164dececedbbe8ac4',
    );
  });
});

describe('numbers', () => {
  test('lease ids of 63 bits survive, and small ones come back as bigint', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), (id) => {
        const { requestId, deadlineMs } = { requestId: 'r', deadlineMs: 1 };
        const command = { type: 'leaseRevoke', id, incarnation: 0 } as const;
        const back = decodeEntry(encodeEntry({ ...BATCH, commands: [{ requestId, deadlineMs, command }] }));
        expect(back.commands[0]?.command).toStrictEqual(command);
      }),
    );
  });

  const unsafe = [2 ** 53, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 5n, '5', null];
  test.each(unsafe)('a revision of %s is refused', (revision) => {
    expect(() => decodeCommand([2, revision])).toThrow(ServiceError);
  });
});

describe('key-value operations', () => {
  const bytes = fc.uint8Array({ maxLength: 40 });
  const keyRange = fc
    .tuple(bytes, fc.option(bytes, { nil: undefined }))
    .map(([key, end]) => (end ? { key, end } : { key }));
  const op = fc.oneof(
    fc.record({
      type: fc.constant('put' as const),
      key: bytes,
      value: bytes,
      lease: fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }),
      prevKv: fc.boolean(),
      ignoreValue: fc.boolean(),
      ignoreLease: fc.boolean(),
    }),
    fc.tuple(keyRange, fc.boolean()).map(([range, prevKv]) => ({ type: 'delete' as const, ...range, prevKv })),
  );

  test('any put and delete survives the wire', () => {
    fc.assert(
      fc.property(op, (given) => {
        expect(canonical(decodeKvOp(overTheWire(encodeKvOp(given))))).toStrictEqual(canonical(given));
      }),
    );
  });

  test('a transaction of 16 levels survives in a log entry, with its results', () => {
    const put = { type: 'put', key: Buffer.from('k'), value: Buffer.from('v'), lease: 0n } as const;
    const nested = (levels: number): Txn => ({
      ...{ compare: [], failure: [] },
      success: [
        levels === 1
          ? { ...put, prevKv: false, ignoreValue: false, ignoreLease: false }
          : { type: 'txn', txn: nested(levels - 1) },
      ],
    });
    const command = { type: 'txn', txn: nested(16) } as const;
    const entry = { ...BATCH, commands: [{ requestId: 'r', deadlineMs: 1, command }] };
    expect(canonical(decodeEntry(encodeEntry(entry)))).toStrictEqual(canonical(entry));
  });

  test('transactions nested too deep are refused', () => {
    let raw: unknown = [3, [[], [], []]];
    for (let i = 0; i < 50; i++) raw = [3, [[], [raw], []]];
    expect(() => decodeKvOp(raw)).toThrow(/nested too deep/);
  });
});

describe('log entries', () => {
  test('every command survives', () => {
    expect(canonical(decodeEntry(encodeEntry(BATCH)))).toStrictEqual(canonical(BATCH));
  });

  test('the first byte is the version, and another one is refused', () => {
    const entry = encodeEntry(BATCH);
    expect(entry[0]).toBe(1);
    entry[0] = 99;
    expect(() => decodeEntry(entry)).toThrow(/format version 99/);
  });

  test('only an entry with a block of revisions has the newer format', () => {
    expect(encodeEntry(BLOCK_BATCH)[0]).toBe(2);
    expect(canonical(decodeEntry(encodeEntry(BLOCK_BATCH)))).toStrictEqual(canonical(BLOCK_BATCH));
  });

  test.each([
    { name: 'begins at 0', block: { first: 0, count: 1 } },
    { name: 'is empty', block: { first: 5, count: 0 } },
    { name: 'ends above the safe integers', block: { first: Number.MAX_SAFE_INTEGER, count: 1 } },
  ])('a block that $name is refused', ({ block }) => {
    expect(() => decodeEntry(encodeEntry({ ...BATCH, block }))).toThrow(/revision/);
  });

  test.each([BATCH, BLOCK_BATCH])('an entry cut short or altered decodes or is INVALID_ARGUMENT', (batch) => {
    const entry = encodeEntry(batch);
    for (let length = 0; length < entry.length; length += 7) {
      expectRefuses(() => decodeEntry(entry.subarray(0, length)));
    }
    fc.assert(
      fc.property(fc.nat({ max: entry.length - 1 }), fc.nat({ max: 255 }), (at, byte) => {
        const altered = Buffer.from(entry);
        altered[at] = byte;
        expectDecodesOrRefuses(() => decodeEntry(altered));
      }),
      { numRuns: 1_000 },
    );
  });

  test('two entries made one after the other do not share memory', () => {
    const [first] = COMMANDS.slice(0, 1).map((command) =>
      encodeEntry({ ...BATCH, commands: [{ requestId: 'a', deadlineMs: 0, command }] }),
    );
    const before = Buffer.from(first ?? []);
    for (let i = 0; i < 100; i++) encodeEntry(BATCH);
    expect(first?.equals(before)).toBe(true);
  });
});

function expectDecodesOrRefuses(decode: () => unknown): void {
  try {
    decode();
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code !== 'INVALID_ARGUMENT') throw error;
  }
}

function expectRefuses(decode: () => unknown): void {
  expect(decode).toThrow(ServiceError);
}
