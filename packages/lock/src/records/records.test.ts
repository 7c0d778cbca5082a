import { InvariantError, utf8 } from '@remora/base';
import { describe, expect, it, test } from 'vitest';
import type { ForcedRelease } from '../types.ts';
import { decodeBarrierWaiter, encodeBarrierWaiter } from './barrier-waiter-record.ts';
import { LockKeys } from './keys.ts';
import { decodeForced, decodeKept, encodeForced, encodeKept } from './persisted-rows-codec.ts';
import { decodeHead, emptyHead, encodeHead, type Head, type Hold, RECORD_VERSION } from './records.ts';
import {
  decodeOwner,
  decodeWaiter,
  encodeOwner,
  encodeShare,
  encodeWaiter,
  type OwnerRecord,
  shareAt,
  type WaiterRecord,
} from './row-records.ts';

const owner = (token: string) => ({ session: { lease: 2n ** 63n - 2n, incarnation: 2 ** 40 + 1 }, token });
const free: Head = { ...emptyHead(), marks: 2, marksDueMs: 1.5 };
const hold = (token: string, data: string): Hold => ({
  holder: { owner: owner(token), version: 2 ** 41, depth: 3, lockTimeMs: 1_732_000_000_000.25, data: utf8(data) },
  mode: 'exclusive',
  permits: 0,
  firstAttempt: 7,
  attempt: 7,
  upgradeAttempt: 0,
  keepData: false,
  delayMs: 0,
  delayed: false,
});
const held = (token: string, data: string, firstAttempt = 7): Head => ({
  ...emptyHead(),
  hold: { ...hold(token, data), firstAttempt },
  waiters: 5,
  firstSequence: 10,
  nextSequence: 2 ** 50,
});
const upgraded: Head = { ...held('t', 'd'), hold: { ...hold('t', 'd'), firstAttempt: 5, upgradeAttempt: 6 } };
const semaphore: Head = {
  ...emptyHead(),
  ...{ sharers: 2, permits: 3, capacity: 4, capacityIsSet: true, waiters: 1, nextSequence: 2 },
};
const upgrading: Head = { ...emptyHead(), sharers: 2, upgrading: true };
const keeping: Head = { ...emptyHead(), hold: { ...hold('t', 'd'), keepData: true }, keepsData: true };
const reader: Hold = { ...hold('t', 'd'), mode: 'shared', firstAttempt: 5, upgradeAttempt: 6 };
const keys = new LockKeys({ namespace: 'n', name: utf8('l') });
const share = (value: Uint8Array, { holder }: Hold) =>
  shareAt(keys, { key: keys.share(holder.owner, holder.version), value });
const waiting = (token: string, data: string): WaiterRecord => ({
  owner: owner(token),
  mode: 'exclusive',
  permits: 0,
  attempt: 4,
  waitUntilMs: 12.5,
  sinceMs: 1e12,
  data: utf8(data),
  keepData: false,
  delayMs: 0,
});
const forPermits: WaiterRecord = { ...waiting('t', ''), mode: 'permits', permits: 2 };
const willKeep: WaiterRecord = { ...waiting('t', ''), keepData: true, delayMs: 60_000 };
const delayed: Hold = { ...hold('t', 'd'), delayMs: 60_000, delayed: true };
const forced: ForcedRelease = { atMs: 1e12, by: 'me@host', reason: 'höst is gone', version: 2 ** 41 };
const inQueue: OwnerRecord = { sequence: 9, mark: undefined, shareVersion: 0 };
const marked: OwnerRecord = { sequence: 0, mark: { attempt: 2, deadlineMs: 99.5 }, shareVersion: 0 };
const sharing: OwnerRecord = { sequence: 0, mark: undefined, shareVersion: 2 ** 41 };

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
    name: 'a head that nobody holds, of which owners are apart',
    bytes: encodeHead({ ...free, apart: true }),
    hex: '01400000000000000002' + '3ff0000000000000' + '3ff0000000000000' + '3ff8000000000000',
    decoded: () => decodeHead(encodeHead({ ...free, apart: true })),
    value: { ...free, apart: true },
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
  {
    name: 'a head whose holder has upgraded',
    bytes: encodeHead(upgraded),
    hex:
      '0301003c0000000500000000' +
      '4024000000000000' +
      '4310000000000000' +
      '0000000000000000' +
      '000000000000000000000000' +
      '00000000' +
      '000000000000000000000000' +
      '0041' +
      '7ffffffffffffffe' +
      '4270000000001000' +
      '401c000000000000' +
      '4280000000000000' +
      '42793433ea800400' +
      '00000003' +
      '4014000000000000' +
      '4018000000000000' +
      '0000000000' +
      '000174' +
      '64',
    decoded: () => decodeHead(encodeHead(upgraded)),
    value: upgraded,
  },
  {
    name: 'the head of a semaphore',
    bytes: encodeHead(semaphore),
    hex:
      '0302003c0000000100000000' +
      '3ff0000000000000' +
      '4000000000000000' +
      '0000000000000000' +
      '000000020000000300000004' +
      '00000000' +
      '000000000000000000000000',
    decoded: () => decodeHead(encodeHead(semaphore)),
    value: semaphore,
  },
  {
    name: 'a head where one upgrades',
    bytes: encodeHead(upgrading),
    hex:
      '0304003c0000000000000000' +
      '3ff0000000000000' +
      '3ff0000000000000' +
      '0000000000000000' +
      '000000020000000000000000' +
      '00000000' +
      '000000000000000000000000',
    decoded: () => decodeHead(encodeHead(upgrading)),
    value: upgrading,
  },
  {
    name: 'a waiter for permits',
    bytes: encodeWaiter(forPermits),
    hex:
      '020032' +
      '7ffffffffffffffe' +
      '4270000000001000' +
      '4010000000000000' +
      '4029000000000000' +
      '426d1a94a2000000' +
      '0200000002' +
      '0000000000' +
      '000174',
    decoded: () => decodeWaiter(encodeWaiter(forPermits)),
    value: forPermits,
  },
  {
    name: 'an owner that shares',
    bytes: encodeOwner(sharing),
    hex: '020020' + '0000000000000000' + '0000000000000000' + 'bff0000000000000' + '4280000000000000',
    decoded: () => decodeOwner(encodeOwner(sharing)),
    value: sharing,
  },
  {
    name: 'a share',
    bytes: encodeShare(reader),
    hex:
      '01002d' +
      '4014000000000000' +
      '401c000000000000' +
      '4018000000000000' +
      '42793433ea800400' +
      '0000000300000000' +
      '0000000000' +
      '64',
    decoded: () => share(encodeShare(reader), reader),
    value: reader,
  },
  {
    name: 'a head whose holder keeps its data, where data was kept',
    bytes: encodeHead(keeping),
    hex:
      '0309003c0000000000000000' +
      '3ff0000000000000' +
      '3ff0000000000000' +
      '0000000000000000' +
      '000000000000000000000000' +
      '00000000' +
      '000000000000000000000000' +
      '0041' +
      '7ffffffffffffffe' +
      '4270000000001000' +
      '401c000000000000' +
      '4280000000000000' +
      '42793433ea800400' +
      '00000003' +
      '401c000000000000' +
      '0000000000000000' +
      '0100000000' +
      '000174' +
      '64',
    decoded: () => decodeHead(encodeHead(keeping)),
    value: keeping,
  },
  {
    name: 'a waiter that will keep its data',
    bytes: encodeWaiter(willKeep),
    hex:
      '020032' +
      '7ffffffffffffffe' +
      '4270000000001000' +
      '4010000000000000' +
      '4029000000000000' +
      '426d1a94a2000000' +
      '0000000000' +
      '010000ea60' +
      '000174',
    decoded: () => decodeWaiter(encodeWaiter(willKeep)),
    value: willKeep,
  },
  {
    name: 'a share that keeps its data and has a delay',
    bytes: encodeShare({ ...reader, keepData: true, delayMs: 60_000 }),
    hex:
      '01002d' +
      '4014000000000000' +
      '401c000000000000' +
      '4018000000000000' +
      '42793433ea800400' +
      '0000000300000000' +
      '010000ea60' +
      '64',
    decoded: () => share(encodeShare({ ...reader, keepData: true, delayMs: 60_000 }), reader),
    value: { ...reader, keepData: true, delayMs: 60_000 },
  },
  {
    name: 'a head whose holder is delayed',
    bytes: encodeHead({ ...emptyHead(), hold: delayed, delayed: 1 }),
    hex:
      '0301003c0000000000000000' +
      '3ff0000000000000' +
      '3ff0000000000000' +
      '0000000000000000' +
      '000000000000000000000000' +
      '00000001' +
      '000000000000000000000000' +
      '0041' +
      '7ffffffffffffffe' +
      '4270000000001000' +
      '401c000000000000' +
      '4280000000000000' +
      '42793433ea800400' +
      '00000003' +
      '401c000000000000' +
      '0000000000000000' +
      '020000ea60' +
      '000174' +
      '64',
    decoded: () => decodeHead(encodeHead({ ...emptyHead(), hold: delayed, delayed: 1 })),
    value: { ...emptyHead(), hold: delayed, delayed: 1 },
  },
  {
    name: 'a head of a lock at which some wait, and some have passed',
    bytes: encodeHead({ ...emptyHead(), sharers: 2, passing: 3, passed: 1, parties: 4 }),
    hex:
      '0300003c0000000000000000' +
      '3ff0000000000000' +
      '3ff0000000000000' +
      '0000000000000000' +
      '000000020000000000000000' +
      '00000000' +
      '000000030000000100000004',
    decoded: () => decodeHead(encodeHead({ ...emptyHead(), sharers: 2, passing: 3, passed: 1, parties: 4 })),
    value: { ...emptyHead(), sharers: 2, passing: 3, passed: 1, parties: 4 },
  },
  {
    name: 'one who waits at a lock',
    bytes: encodeBarrierWaiter({ attempt: 4, waitUntilMs: 12.5, passedVersion: 2 ** 41, parties: 3 }),
    hex: '01001c' + '4010000000000000' + '4029000000000000' + '4280000000000000' + '00000003',
    decoded: () =>
      decodeBarrierWaiter(encodeBarrierWaiter({ attempt: 4, waitUntilMs: 12.5, passedVersion: 2 ** 41, parties: 3 })),
    value: { attempt: 4, waitUntilMs: 12.5, passedVersion: 2 ** 41, parties: 3 },
  },
  {
    name: 'a forced release',
    bytes: encodeForced(forced),
    hex: '010010' + '426d1a94a2000000' + '4280000000000000' + '00076d6540686f7374' + '68c3b6737420697320676f6e65',
    decoded: () => decodeForced(encodeForced(forced)),
    value: forced,
  },
  {
    name: 'a head that only says who took the lock by force',
    bytes: encodeHead({ ...emptyHead(), forcedOnRecord: true }),
    hex:
      '0310003c0000000000000000' +
      '3ff0000000000000' +
      '3ff0000000000000' +
      '0000000000000000' +
      '000000000000000000000000' +
      '00000000' +
      '000000000000000000000000',
    decoded: () => decodeHead(encodeHead({ ...emptyHead(), forcedOnRecord: true })),
    value: { ...emptyHead(), forcedOnRecord: true },
  },
  {
    name: 'kept data',
    bytes: encodeKept(utf8('kept')),
    hex: '01' + '6b657074',
    decoded: () => decodeKept(encodeKept(utf8('kept'))),
    value: utf8('kept'),
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
      { bytes: encodeHead(upgraded).subarray(0, -1), decode: decodeHead },
      { bytes: encodeHead(semaphore), decode: decodeHead },
      { bytes: encodeWaiter(forPermits), decode: decodeWaiter },
      { bytes: encodeOwner(sharing), decode: decodeOwner },
      { bytes: encodeShare(reader).subarray(0, -1), decode: (value: Uint8Array) => share(value, reader) },
    ];
    for (const { bytes, decode } of whole) {
      for (let length = 0; length < bytes.length; length++) {
        expect(() => decode(bytes.subarray(0, length)), `${length} bytes`).toThrow(InvariantError);
      }
      const newer = Buffer.from(bytes);
      newer[0] = RECORD_VERSION + 8;
      expect(() => decode(newer)).toThrow('version 9');
    }
  });

  it('a block of a later version is refused, as what it says more would be lost', () => {
    const longer = encodeOwner(sharing);
    longer[2] = 40;
    expect(() => decodeOwner(longer)).toThrow('R5');
    const flags = encodeHead(upgrading);
    flags[1] = 128;
    expect(() => decodeHead(flags)).toThrow('flags 128');
  });

  it('blocks that lack what was added at their ends are read as they were meant', () => {
    const before = [
      { bytes: encodeHead(upgraded), at: 64, lacks: 5, decode: decodeHead, value: upgraded },
      { bytes: encodeHead(semaphore), at: 2, lacks: 16, decode: decodeHead, value: semaphore },
      { bytes: encodeWaiter(forPermits), at: 1, lacks: 5, decode: decodeWaiter, value: forPermits },
      { bytes: encodeShare(reader), at: 1, lacks: 5, decode: (b: Uint8Array) => share(b, reader), value: reader },
    ];
    for (const { bytes, at, lacks, decode, value } of before) {
      expect(plain(decode(shortened(bytes, at, lacks)))).toEqual(plain(value));
      expect(() => decode(shortened(bytes, at, lacks + 1))).toThrow('R5');
    }
  });
});

/** A record without the last bytes of the block at `at`. */
function shortened(record: Buffer, at: number, bytes: number): Buffer {
  const length = record.readUInt16BE(at);
  const end = at + 2 + length;
  const shorter = Buffer.concat([record.subarray(0, end - bytes), record.subarray(end)]);
  shorter.writeUInt16BE(length - bytes, at);
  return shorter;
}

/** With bytes as text, whatever class they have. */
function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('hex');
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, plain(field)]));
}
