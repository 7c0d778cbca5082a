import { describe, expect, it } from 'vitest';
import { FrameCache } from './frame-cache.ts';
import { FRAME_HEADER_BYTES } from './log-format.ts';
import { FrameWriter } from './record-codec.ts';

/** The payload of a frame with an entry of `size` bytes for each group. */
function payloadOf(groups: readonly number[], size: number): Buffer {
  const writer = new FrameWriter();
  writer.begin();
  for (const groupId of groups) {
    writer.add({ groupId, entries: [{ index: 1, term: 1, type: 'normal', data: Buffer.alloc(size, groupId) }] });
  }
  const length = writer.payloadBytes;
  const frame = Buffer.concat(writer.finish({ generation: 1, sequence: 1 }).chunks);
  return frame.subarray(FRAME_HEADER_BYTES, FRAME_HEADER_BYTES + length);
}

const at = (offset: number) => ({ generation: 1, offset });

describe('the cache of frames', () => {
  it('keeps what several groups may want, with the places of their records', () => {
    const cache = new FrameCache(1 << 20);
    const payload = payloadOf([7, 8, 7], 50);
    const { records } = cache.add(at(64), payload, 300);
    expect([...records.keys()]).toEqual([7, 8]);
    expect(records.get(7)).toHaveLength(2);
    expect(cache.get(1, 64)).toEqual({ payload, end: 300, records });
    expect(cache.get(2, 64)).toBeUndefined();
  });

  it('keeps no large piece of the file in memory for a small frame in it', () => {
    const cache = new FrameCache(1 << 20);
    const piece = Buffer.alloc(10_000);
    const payload = payloadOf([7, 8], 50);
    payload.copy(piece, 1_000);
    cache.add(at(64), piece.subarray(1_000, 1_000 + payload.length), 300);
    expect(cache.get(1, 64)?.payload).toEqual(payload);
    expect(cache.get(1, 64)?.payload.buffer).not.toBe(piece.buffer);
  });

  it('does not keep what is of one group only (K1)', () => {
    const cache = new FrameCache(1 << 20);
    expect(cache.add(at(64), payloadOf([7, 7], 50), 300).records.get(7)).toHaveLength(2);
    expect(cache.get(1, 64)).toBeUndefined();
    expect(cache.bytes).toBe(0);
  });

  it('lets go of what was not used for longest, to stay within its limit (K1)', () => {
    const cache = new FrameCache(10_000);
    const add = (offset: number) => cache.add(at(offset), payloadOf([7, 8], 1_000), offset + 1);
    for (const offset of [1, 2, 3]) add(offset);
    cache.get(1, 1);
    add(4);
    expect([1, 2, 3, 4].filter((offset) => cache.get(1, offset) !== undefined)).toEqual([1, 3, 4]);
    for (let offset = 5; offset < 500; offset++) {
      add(offset);
      expect(cache.bytes).toBeLessThanOrEqual(10_000);
    }
  });
});
