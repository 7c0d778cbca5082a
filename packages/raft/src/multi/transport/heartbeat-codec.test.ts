import { createHash } from 'node:crypto';
import { SeededRandom } from '@remora/base';
import { describe, expect, test } from 'vitest';
import { heartbeat } from '../../../test/support/transport/transport-contract.ts';
import type { Heartbeat, HeartbeatReply } from '../ports.ts';
import { encodeFrame } from './codec.ts';
import { HeartbeatDecoder, HeartbeatEncoder, isHeartbeatFrame } from './heartbeat-codec.ts';
import { WIRE_VERSION, WireError } from './wire-bytes.ts';

const beat = (groups: readonly number[], sequence = 5): Heartbeat => {
  return { type: 'heartbeat', bootId: Number.MAX_SAFE_INTEGER, sequence, groups };
};
const REPLY: HeartbeatReply = {
  type: 'reply',
  bootId: 2 ** 40,
  sequence: 300,
  replierBootId: 1,
  refused: [
    { groupId: 1, reason: 'notFollowing', term: 2 ** 33 },
    { groupId: 200, reason: 'noReplica', term: 0 },
  ],
};
const decode = (bytes: Uint8Array) => new HeartbeatDecoder().decode(bytes);
const dense = (count: number, from = 2) => Array.from({ length: count }, (_, i) => from + i);

describe('merged heartbeats on the wire', () => {
  test.each([
    { name: 'no group', groups: [] },
    { name: 'dense ids', groups: dense(1000) },
    {
      name: 'ids at every size of a varint',
      groups: [1, 0x7f, 0x80, 0x3fff, 0x4000, 2 ** 35, Number.MAX_SAFE_INTEGER],
    },
  ])('$name comes out as it went in', ({ groups }) => {
    expect(decode(new HeartbeatEncoder().encode(beat(groups)))).toEqual(beat(groups));
  });

  test('a reply comes out as it went in', () => {
    expect(decode(new HeartbeatEncoder().encode(REPLY))).toEqual(REPLY);
  });

  test('dense ids cost one byte each: a frame is under two bytes per group', () => {
    expect(new HeartbeatEncoder().encode(beat(dense(1000, 1_000_000))).length).toBeLessThan(1000 + 30);
    // Every third group: as if three nodes shared the leaderships.
    const third = Array.from({ length: 1000 }, (_, i) => 7 + 3 * i);
    expect(new HeartbeatEncoder().encode(beat(third)).length).toBeLessThan(1000 + 30);
  });

  test('a list that did not change is the same object after decoding, and one that changed is not', () => {
    const encoder = new HeartbeatEncoder();
    const decoder = new HeartbeatDecoder();
    const groups = dense(10);
    const lists = [beat(groups, 1), beat(groups, 2), beat(dense(9), 3), beat(groups, 4)].map((frame) => {
      const decoded = decoder.decode(encoder.encode(frame));
      expect(decoded).toEqual(frame);
      return decoded.type === 'heartbeat' ? decoded.groups : undefined;
    });
    expect(lists[1]).toBe(lists[0]);
    expect(lists[2]).not.toBe(lists[0]);
  });

  test('a frame of messages is told from a heartbeat', () => {
    expect(isHeartbeatFrame(encodeFrame([heartbeat(1)]))).toBe(false);
    expect(isHeartbeatFrame(new HeartbeatEncoder().encode(REPLY))).toBe(true);
    expect(() => decode(encodeFrame([heartbeat(1)]))).toThrow(WireError);
  });

  test('the wire form is pinned: a change needs a new version', () => {
    const encoder = new HeartbeatEncoder();
    const hash = createHash('sha256')
      .update(encoder.encode(beat([2, 3, 2 ** 40])))
      .update(encoder.encode(REPLY));
    expect(hash.digest('hex')).toMatchInlineSnapshot(
      `"fddc05b4151f8a6974420535017c3fe0f40e0a5a2e1c2fea20bf4e20a93e7d9b"`,
    );
  });

  test.each<{ name: string; bytes: number[] }>([
    { name: 'nothing', bytes: [] },
    { name: 'another version', bytes: [0xc1, WIRE_VERSION - 1, 0, 1, 1, 0] },
    { name: 'an unknown kind', bytes: [0xc1, WIRE_VERSION, 2, 1, 1, 0] },
    { name: 'a header that is cut short', bytes: [0xc1, WIRE_VERSION, 0, 0x80] },
    { name: 'more groups than bytes', bytes: [0xc1, WIRE_VERSION, 0, 1, 1, 3, 1, 1] },
    { name: 'bytes left over', bytes: [0xc1, WIRE_VERSION, 0, 1, 1, 1, 1, 1] },
    { name: 'an id twice', bytes: [0xc1, WIRE_VERSION, 0, 1, 1, 2, 1, 0] },
    {
      name: 'a number beyond 2^53',
      bytes: [0xc1, WIRE_VERSION, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 1, 0],
    },
    {
      name: 'a number that does not end',
      bytes: [0xc1, WIRE_VERSION, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1],
    },
    { name: 'an unknown reason', bytes: [0xc1, WIRE_VERSION, 1, 1, 1, 1, 1, 1, 2, 0] },
    { name: 'a reply with a refusal missing', bytes: [0xc1, WIRE_VERSION, 1, 1, 1, 1, 2, 1, 0, 0] },
  ])('$name is refused', ({ bytes }) => {
    expect(() => decode(Uint8Array.from(bytes))).toThrow(WireError);
  });

  test('damaged frames are refused or decode to well-formed frames, and never throw anything else', () => {
    const random = new SeededRandom(42);
    const frames = [new HeartbeatEncoder().encode(beat(dense(40))), new HeartbeatEncoder().encode(REPLY)];
    for (let i = 0; i < 3000; i++) {
      const frame = frames[i % 2] ?? Buffer.alloc(0);
      const damaged = Buffer.from(frame.subarray(0, 1 + random.int(frame.length)));
      for (let n = random.int(4); n >= 0; n--) damaged[random.int(damaged.length)] = random.int(256);
      try {
        const decoded = decode(damaged);
        const ids = decoded.type === 'heartbeat' ? decoded.groups : decoded.refused.map(({ groupId }) => groupId);
        expect(ids.every((id, n) => Number.isSafeInteger(id) && id > (ids[n - 1] ?? 0))).toBe(true);
      } catch (error) {
        expect(error, `seed 42, round ${i}`).toBeInstanceOf(WireError);
      }
    }
  });
});
