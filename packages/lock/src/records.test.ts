import { InvariantError, utf8 } from '@remora/base';
import { describe, expect, it, test } from 'vitest';
import {
  decodeHead,
  decodeOwner,
  decodeWaiter,
  encodeHead,
  encodeOwner,
  encodeWaiter,
  type Head,
  type OwnerRecord,
  RECORD_VERSION,
  type WaiterRecord,
} from './records.ts';

const owner = (token: string) => ({ session: { lease: 2n ** 63n - 2n, incarnation: 2 ** 40 + 1 }, token });
const free: Head = { hold: undefined, waiters: 0, firstSequence: 1, nextSequence: 1, marks: 2, marksDueMs: 1.5 };
const held = (token: string, data: string, firstAttempt = 7): Head => ({
  hold: {
    holder: { owner: owner(token), version: 2 ** 41, depth: 3, lockTimeMs: 1_732_000_000_000.25, data: utf8(data) },
    firstAttempt,
    attempt: 7,
  },
  waiters: 5,
  firstSequence: 10,
  nextSequence: 2 ** 50,
  marks: 0,
  marksDueMs: 0,
});
const waiting = (token: string, data: string): WaiterRecord => ({
  owner: owner(token),
  attempt: 4,
  waitUntilMs: 12.5,
  sinceMs: 1e12,
  data: utf8(data),
});
const inQueue: OwnerRecord = { sequence: 9, mark: undefined };
const marked: OwnerRecord = { sequence: 0, mark: { attempt: 2, deadlineMs: 99.5 } };

/** Records as a disk may hold them: a change here needs a new version beside this one. */
const records = [
  {
    name: 'a head that nobody holds',
    bytes: encodeHead(free),
    hex: '01000000000000000002' + '3ff0000000000000' + '3ff0000000000000' + '3ff8000000000000',
    decoded: () => decodeHead(encodeHead(free)),
    value: free,
  },
  {
    name: 'a head with its holder',
    bytes: encodeHead(held('tökén', 'data')),
    hex:
      '01010000000500000000' +
      '4024000000000000' +
      '4310000000000000' +
      '0000000000000000' +
      '7ffffffffffffffe' +
      '4270000000001000' +
      '401c000000000000' +
      '4280000000000000' +
      '42793433ea800400' +
      '00000003' +
      '000774c3b66bc3a96e' +
      '64617461',
    decoded: () => decodeHead(encodeHead(held('tökén', 'data'))),
    value: held('tökén', 'data'),
  },
  {
    name: 'a head whose holder has re-entered',
    bytes: encodeHead(held('t', 'd', 5)),
    hex:
      '02010000000500000000' +
      '4024000000000000' +
      '4310000000000000' +
      '0000000000000000' +
      '7ffffffffffffffe' +
      '4270000000001000' +
      '401c000000000000' +
      '4280000000000000' +
      '42793433ea800400' +
      '00000003' +
      '4014000000000000' +
      '000174' +
      '64',
    decoded: () => decodeHead(encodeHead(held('t', 'd', 5))),
    value: held('t', 'd', 5),
  },
  {
    name: 'a waiter',
    bytes: encodeWaiter(waiting('t', '')),
    hex:
      '01' +
      '7ffffffffffffffe' +
      '4270000000001000' +
      '4010000000000000' +
      '4029000000000000' +
      '426d1a94a2000000' +
      '000174',
    decoded: () => decodeWaiter(encodeWaiter(waiting('t', ''))),
    value: waiting('t', ''),
  },
  {
    name: 'an owner in the queue',
    bytes: encodeOwner(inQueue),
    hex: '01' + '4022000000000000' + '0000000000000000' + 'bff0000000000000',
    decoded: () => decodeOwner(encodeOwner(inQueue)),
    value: inQueue,
  },
  {
    name: 'an owner with a mark',
    bytes: encodeOwner(marked),
    hex: '01' + '0000000000000000' + '4000000000000000' + '4058e00000000000',
    decoded: () => decodeOwner(encodeOwner(marked)),
    value: marked,
  },
];

describe('records', () => {
  test.each(records)('$name is what disks hold, and comes back', ({ bytes, hex, decoded, value }) => {
    expect(bytes.toString('hex')).toBe(hex);
    expect(plain(decoded())).toEqual(plain(value));
  });

  it('tokens of all lengths and alphabets come back', () => {
    for (const token of [
      '',
      'a',
      'x'.repeat(64),
      'x'.repeat(65),
      'x'.repeat(128),
      'é'.repeat(32),
      'é'.repeat(64),
      '€',
    ]) {
      expect(decodeWaiter(encodeWaiter(waiting(token, 'd'))).owner.token).toBe(token);
      expect(decodeHead(encodeHead(held(token, 'd'))).hold?.holder.owner.token).toBe(token);
    }
  });

  it('records are read from anywhere in a larger block', () => {
    const record = encodeHead(held('t', 'data'));
    const block = Buffer.concat([Buffer.alloc(13, 0xff), record, Buffer.alloc(50, 0xff)]);
    const slice = new Uint8Array(block.buffer, block.byteOffset + 13, record.length);
    expect(plain(decodeHead(slice))).toEqual(plain(held('t', 'data')));
  });

  it('a record that is cut short or of another version is a broken invariant', () => {
    const whole = [
      { bytes: encodeHead(held('token', '')), decode: decodeHead },
      { bytes: encodeHead(held('token', '', 5)), decode: decodeHead },
      { bytes: encodeWaiter(waiting('token', '')), decode: decodeWaiter },
      { bytes: encodeOwner(marked), decode: decodeOwner },
    ];
    for (const { bytes, decode } of whole) {
      for (let length = 0; length < bytes.length; length++) {
        expect(() => decode(bytes.subarray(0, length)), `${length} bytes`).toThrow(InvariantError);
      }
      const newer = Buffer.from(bytes);
      newer[0] = RECORD_VERSION + 2;
      expect(() => decode(newer)).toThrow('version 3');
    }
  });
});

/** With bytes as text, whatever class they have. */
function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('hex');
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, plain(field)]));
}
