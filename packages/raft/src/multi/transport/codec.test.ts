import { createHash } from 'node:crypto';
import { SeededRandom } from '@remora/base';
import { describe, expect, test } from 'vitest';
import { SNAPSHOT_HEADER } from '../../../test/support/transport/transport-contract.ts';
import type { Message } from '../../core/types.ts';
import type { GroupMessage } from '../ports.ts';
import { decodeFrame, decodeSnapshotHeader, encodedBytesMax, encodeFrame, encodeSnapshotHeader } from './codec.ts';
import { WIRE_VERSION, WireError } from './wire-bytes.ts';

const envelope = { from: 21, to: 2 ** 45, term: 2 ** 33 };
const conf = { voters: [1, 2, 3], votersOutgoing: [4], learners: [5], learnersNext: [4], autoLeave: true };
const MESSAGES: readonly Message[] = [
  { type: 'preVote', ...envelope, lastIndex: 5, lastTerm: 4, committed: { index: 3, term: 2 } },
  { type: 'preVoteResponse', ...envelope, reject: true, committed: { index: 2 ** 49, term: 2 } },
  { type: 'vote', ...envelope, lastIndex: 2 ** 50, lastTerm: 4, force: true, committed: { index: 4, term: 4 } },
  { type: 'voteResponse', ...envelope, reject: false },
  {
    type: 'append',
    ...envelope,
    prevIndex: 9,
    prevTerm: 3,
    entries: [
      { index: 10, term: 4, type: 'normal', data: Buffer.from('a batch of commands') },
      { index: 11, term: 4, type: 'conf', data: Buffer.alloc(0) },
    ],
    commit: 8,
  },
  { type: 'appendResponse', ...envelope, reject: true, index: 9, hintIndex: 7, hintTerm: 2, commit: 6 },
  { type: 'heartbeat', ...envelope, commit: 6, readContext: 77 },
  { type: 'heartbeatResponse', ...envelope, commit: 6, readContext: 77 },
  { type: 'snapshot', ...envelope, snapshot: { index: 12, term: 4, conf } },
  { type: 'timeoutNow', ...envelope },
];
const ALL: readonly GroupMessage[] = MESSAGES.map((message, i) => ({ groupId: 2 + i, message }));
/** A frame of these bytes behind its head. */
const frameOf = (...bytes: readonly number[]): Uint8Array => Uint8Array.from([0xc0, WIRE_VERSION, ...bytes]);

describe('frames', () => {
  test('every kind of message comes out as it went in', () => {
    expect(decodeFrame(encodeFrame(ALL))).toEqual(ALL);
  });

  test('the wire form of every kind of message is pinned: a change needs a new version', () => {
    const hash = createHash('sha256').update(encodeFrame(ALL)).update(encodeSnapshotHeader(SNAPSHOT_HEADER));
    expect(hash.digest('hex')).toMatchInlineSnapshot(
      `"6d5ac6ad4f88eafc5d6bc4c186f8bb0ae6b0ce6001feb0b093d613ae18385104"`,
    );
  });

  test.each<{ name: string; bytes: Uint8Array; because: RegExp }>([
    { name: 'nothing', bytes: Buffer.alloc(0), because: /not a frame/ },
    { name: 'text', bytes: Buffer.from('GET / HTTP/1.1\r\n\r\n'), because: /not a frame/ },
    { name: 'another version', bytes: Uint8Array.from([0xc0, WIRE_VERSION - 1]), because: /version/ },
    { name: 'an unknown type', bytes: frameOf(1, 10, 1, 1, 1), because: /type/ },
    { name: 'a message that is cut short', bytes: frameOf(1, 6, 1, 1, 1, 5), because: /truncated/ },
    { name: 'a number beyond 2^53', bytes: frameOf(255, 255, 255, 255, 255, 255, 255, 127), because: /too large/ },
    { name: 'a number that does not end', bytes: frameOf(...Array(8).fill(0x80), 1), because: /too large/ },
    { name: 'more entries than bytes', bytes: frameOf(1, 4, 1, 1, 1, 0, 0, 0, 2, 0, 1, 0), because: /truncated/ },
    {
      name: 'an entry that is cut short',
      bytes: frameOf(1, 4, 1, 1, 1, 0, 0, 0, 1, 0, 1, 3, 0, 0),
      because: /truncated/,
    },
    { name: 'an entry of unknown type', bytes: frameOf(1, 4, 1, 1, 1, 0, 0, 0, 1, 4, 1, 0), because: /type/ },
    { name: 'a first entry without a term', bytes: frameOf(1, 4, 1, 1, 1, 0, 0, 0, 1, 2, 0), because: /term/ },
    { name: 'entries beyond the last index', bytes: entriesAtTheEnd(), because: /too large/ },
    { name: 'a list that is cut short', bytes: frameOf(1, 8, 1, 1, 1, 1, 1, 0, 2, 1), because: /truncated/ },
    { name: 'a flag is neither 0 nor 1', bytes: frameOf(1, 8, 1, 1, 1, 1, 1, 2, 0, 0, 0, 0), because: /neither/ },
  ])('$name is refused', ({ bytes, because }) => {
    expect(() => decodeFrame(bytes)).toThrow(WireError);
    expect(() => decodeFrame(bytes)).toThrow(because);
  });

  test('damaged frames are refused or decode to well-formed messages, and never throw anything else', () => {
    const random = new SeededRandom(42);
    const frame = encodeFrame(ALL);
    for (let i = 0; i < 3000; i++) {
      const damaged = Buffer.from(frame.subarray(0, 1 + random.int(frame.length)));
      for (let n = random.int(4); n >= 0; n--) damaged[random.int(damaged.length)] = random.int(256);
      try {
        for (const { groupId, message } of decodeFrame(damaged)) {
          expect(Number.isSafeInteger(groupId) && Number.isSafeInteger(message.term)).toBe(true);
        }
      } catch (error) {
        expect(error, `seed 42, round ${i}`).toBeInstanceOf(WireError);
      }
    }
  });

  test('numbers of every length come out as they went in', () => {
    const numbers = [0, 0x7f, 0x80, 2 ** 14 - 1, 2 ** 31 - 1, 2 ** 31, 2 ** 32, 2 ** 49, Number.MAX_SAFE_INTEGER];
    const messages = numbers.map(
      (term): GroupMessage => ({ groupId: term, message: { ...MESSAGES[9], term } as Message }),
    );
    expect(decodeFrame(encodeFrame(messages))).toEqual(messages);
  });

  test('what cannot be read back is not written', () => {
    for (const term of [-1, 1.5, 2 ** 53, Number.NaN]) {
      expect(() => encodeFrame([{ groupId: 1, message: { ...MESSAGES[9], term } as Message }])).toThrow(
        /safe integers/,
      );
    }
  });

  test('no message takes more than it was measured to take', () => {
    const most = { from: Number.MAX_SAFE_INTEGER, to: Number.MAX_SAFE_INTEGER, term: Number.MAX_SAFE_INTEGER };
    for (const given of MESSAGES) {
      const message: Message = { ...given, ...most };
      expect(encodeFrame([{ groupId: Number.MAX_SAFE_INTEGER, message }]).length).toBeLessThanOrEqual(
        2 + encodedBytesMax(message),
      );
    }
  });

  test('a small entry does not pin the frame that it came in, a large one stays where it is', () => {
    const sizes = [10, 3_000, 10, 100_000, 20, 3_000];
    const entries = sizes.map((size, i) => ({
      index: 1 + i,
      term: 1,
      type: 'normal' as const,
      data: Buffer.alloc(size, i),
    }));
    const message: Message = { type: 'append', ...envelope, prevIndex: 0, prevTerm: 0, entries, commit: 0 };
    const frame = Buffer.from(encodeFrame([{ groupId: 1, message }]));
    const [item] = decodeFrame(frame);
    const decoded = item?.message.type === 'append' ? item.message.entries : [];
    expect(decoded.map(({ data }, i) => entries[i]?.data.equals(data))).toEqual(sizes.map(() => true));
    expect(decoded.map(({ data }) => data.buffer === frame.buffer)).toEqual([false, false, false, true, false, false]);
    expect(decoded.every(({ data }) => data.buffer.byteLength <= 8 * 1024 || data.buffer === frame.buffer)).toBe(true);
  });

  test('small entries that came together share pieces of bounded size', () => {
    const entries = Array.from({ length: 2_000 }, (_, i) => ({
      index: 1 + i,
      term: 1 + Math.floor(i / 7),
      type: i % 5 === 0 ? ('conf' as const) : ('normal' as const),
      data: Buffer.alloc(i % 90, i),
    }));
    const message: Message = { type: 'append', ...envelope, prevIndex: 0, prevTerm: 0, entries, commit: 0 };
    const [item] = decodeFrame(encodeFrame([{ groupId: 1, message }]));
    expect(item?.message).toEqual(message);
    const decoded = item?.message.type === 'append' ? item.message.entries : [];
    const pieces = new Set(decoded.map(({ data }) => data.buffer));
    expect(Math.max(...[...pieces].map((piece) => piece.byteLength))).toBeLessThanOrEqual(8 * 1024);
    expect(pieces.size).toBeLessThan(20);
  });
});

/** An append of one entry behind the largest index. */
function entriesAtTheEnd(): Uint8Array {
  const message: Message = { type: 'append', ...envelope, prevIndex: 2 ** 53 - 1, prevTerm: 1, entries: [], commit: 0 };
  const frame = encodeFrame([{ groupId: 1, message }]);
  return Buffer.concat([frame.subarray(0, -1), Uint8Array.from([1, 0, 1, 0])]);
}

test('a snapshot header comes out as it went in, and garbage is refused', () => {
  expect(decodeSnapshotHeader(encodeSnapshotHeader(SNAPSHOT_HEADER))).toEqual(SNAPSHOT_HEADER);
  expect(() => decodeSnapshotHeader(Buffer.from('garbage'))).toThrow(WireError);
  const header = encodeSnapshotHeader(SNAPSHOT_HEADER);
  expect(() => decodeSnapshotHeader(header.subarray(0, -1))).toThrow(WireError);
  expect(() => decodeSnapshotHeader(Buffer.concat([header, Buffer.alloc(1)]))).toThrow(/trailing bytes/);
});
