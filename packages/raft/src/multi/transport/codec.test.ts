import { createHash } from 'node:crypto';
import { SeededRandom } from '@remora/base';
import { Packr } from 'msgpackr';
import { describe, expect, test } from 'vitest';
import type { Message } from '../../core/types.ts';
import type { GroupMessage } from '../ports.ts';
import { decodeFrame, decodeSnapshotHeader, encodeFrame, encodeSnapshotHeader, WireError } from './codec.ts';
import { SNAPSHOT_HEADER } from './transport-contract.ts';

const envelope = { from: 21, to: 2 ** 45, term: 2 ** 33 };
const conf = { voters: [1, 2, 3], votersOutgoing: [4], learners: [5], learnersNext: [4], autoLeave: true };
const MESSAGES: readonly Message[] = [
  { type: 'preVote', ...envelope, lastIndex: 5, lastTerm: 4 },
  { type: 'preVoteResponse', ...envelope, reject: true },
  { type: 'vote', ...envelope, lastIndex: 2 ** 50, lastTerm: 4, force: true },
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
const packr = new Packr({ useRecords: false });

describe('frames', () => {
  test('every kind of message comes out as it went in', () => {
    expect(decodeFrame(encodeFrame(ALL))).toEqual(ALL);
  });

  test('the wire form of every kind of message is pinned: a change needs a new version', () => {
    const hash = createHash('sha256').update(encodeFrame(ALL)).update(encodeSnapshotHeader(SNAPSHOT_HEADER));
    expect(hash.digest('hex')).toMatchInlineSnapshot(
      `"9d8b18d0876b47dde5d10c88d0e898437f358b1d9d5034b30b476decc4c0b28f"`,
    );
  });

  test.each<{ name: string; bytes: Uint8Array }>([
    { name: 'nothing', bytes: Buffer.alloc(0) },
    { name: 'text', bytes: Buffer.from('GET / HTTP/1.1\r\n\r\n') },
    { name: 'another version', bytes: packr.pack([3, []]) },
    { name: 'no list of messages', bytes: packr.pack([2, 5]) },
    { name: 'a message that is no array', bytes: packr.pack([2, [{}]]) },
    { name: 'an unknown type', bytes: packr.pack([2, [[1, 10, 1, 1, 1]]]) },
    { name: 'a missing position', bytes: packr.pack([2, [[1, 6, 1, 1, 1, 5]]]) },
    { name: 'a negative term', bytes: packr.pack([2, [[1, 9, 1, 1, -1]]]) },
    { name: 'a fraction', bytes: packr.pack([2, [[1.5, 9, 1, 1, 1]]]) },
    { name: 'an unsafe integer', bytes: packr.pack([2, [[2 ** 60, 9, 1, 1, 1]]]) },
    { name: 'entries cut short', bytes: packr.pack([2, [[1, 4, 1, 1, 1, 0, 0, 0, [1, 0]]]]) },
    { name: 'entry data that is text', bytes: packr.pack([2, [[1, 4, 1, 1, 1, 0, 0, 0, [1, 0, 'x']]]]) },
    { name: 'an entry of unknown type', bytes: packr.pack([2, [[1, 4, 1, 1, 1, 0, 0, 0, [1, 2, Buffer.alloc(1)]]]]) },
  ])('$name is refused', ({ bytes }) => {
    expect(() => decodeFrame(bytes)).toThrow(WireError);
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

  test('a small entry does not pin the frame that it came in', () => {
    const entries = [
      { index: 1, term: 1, type: 'normal' as const, data: Buffer.alloc(10, 1) },
      { index: 2, term: 1, type: 'normal' as const, data: Buffer.alloc(100_000, 2) },
    ];
    const message: Message = { type: 'append', ...envelope, prevIndex: 0, prevTerm: 0, entries, commit: 0 };
    const frame = Buffer.from(encodeFrame([{ groupId: 1, message }]));
    const [item] = decodeFrame(frame);
    const data = item?.message.type === 'append' ? item.message.entries.map((entry) => entry.data.buffer) : [];
    expect(data[0]).not.toBe(frame.buffer);
    expect(data[1]).toBe(frame.buffer);
  });
});

test('a snapshot header comes out as it went in, and garbage is refused', () => {
  expect(decodeSnapshotHeader(encodeSnapshotHeader(SNAPSHOT_HEADER))).toEqual(SNAPSHOT_HEADER);
  expect(() => decodeSnapshotHeader(Buffer.from('garbage'))).toThrow(WireError);
  expect(() => decodeSnapshotHeader(packr.pack([2, 1, 2, 3, 4, [1, 2, 3]]))).toThrow(WireError);
});
