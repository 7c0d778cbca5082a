import fc from 'fast-check';
import { expect, test } from 'vitest';
import { FrameError, type FrameKind, FrameParser, frameBytes } from './frame-parser.ts';

const frames = fc.array(
  fc.record({
    kind: fc.constantFrom<FrameKind>('data', 'probe', 'answer', 'end'),
    // Around the size up to which a frame is sent in one piece.
    payload: fc.oneof(
      fc.uint8Array({ maxLength: 40 }),
      fc.nat(40_000).map((size) => new Uint8Array(size).fill(size)),
    ),
  }),
  { maxLength: 12 },
);

test('however the bytes are cut on the way, the frames come out whole, in order, and hold little else', () => {
  fc.assert(
    fc.property(frames, fc.array(fc.integer({ min: 1, max: 30_000 }), { minLength: 1, maxLength: 8 }), (sent, cuts) => {
      const bytes = Buffer.concat(sent.flatMap(({ kind, payload }) => frameBytes(kind, payload)));
      const received: { kind: FrameKind; payload: Buffer }[] = [];
      const parser = new FrameParser(40_000, (kind, payload) => received.push({ kind, payload }));
      for (let at = 0, i = 0; at < bytes.length; i++) {
        const size = cuts[i % cuts.length] ?? 1;
        parser.push(Buffer.from(new Uint8Array(bytes.subarray(at, at + size)).buffer));
        at += size;
      }
      expect(received.map(({ kind, payload }) => [kind, payload.toString('latin1')])).toEqual(
        sent.map(({ kind, payload }) => [kind, Buffer.from(payload).toString('latin1')]),
      );
      for (const { payload } of received) {
        // FP1; small copies lie in pieces that Node keeps for them.
        expect(payload.buffer.byteLength).toBeLessThanOrEqual(Math.max(2 * payload.length + 4, Buffer.poolSize));
      }
    }),
    { numRuns: 100 },
  );
});

test('a frame that is announced as larger than allowed is refused before it comes', () => {
  const parser = new FrameParser(10, () => expect.unreachable());
  const [head] = frameBytes('data', new Uint8Array(11));
  expect(() => parser.push(Buffer.from(head?.subarray(0, 4) ?? []))).toThrow(FrameError);
});
