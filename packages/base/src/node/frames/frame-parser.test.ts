import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
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

test('frames of any number of small pieces come out whole, and those behind them', () => {
  const sent = [1_000, 255, 256, 257, 3].map((size) => Buffer.from(Array.from({ length: size }, (_, i) => i % 251)));
  const received: Buffer[] = [];
  const parser = new FrameParser(40_000, (_, payload) => received.push(payload));
  for (const byte of Buffer.concat(sent.flatMap((payload) => frameBytes('data', payload)))) {
    parser.push(Buffer.of(byte));
  }
  expect([received, parser.unfinishedBytes]).toEqual([sent, 0]);
});

test('a frame that is announced as larger than allowed is refused before it comes', () => {
  const parser = new FrameParser(10, () => expect.unreachable());
  const [head] = frameBytes('data', new Uint8Array(11));
  expect(() => parser.push(Buffer.from(head?.subarray(0, 4) ?? []))).toThrow(FrameError);
});

test('a frame that comes byte by byte comes out whole, and takes little more than its bytes meanwhile (FP3)', () => {
  const size = 100_000;
  const received: Buffer[] = [];
  const parser = new FrameParser(size, (_kind, payload) => received.push(payload));
  const bytes = Buffer.concat(frameBytes('data', new Uint8Array(size).fill(7)));
  const before = memoryKept();
  for (let at = 0; at < bytes.length - 1; at++) parser.push(Buffer.from(new Uint8Array([bytes[at] ?? 0]).buffer));
  expect(memoryKept() - before).toBeLessThan(20 * size);
  expect(received).toEqual([]);
  parser.push(bytes.subarray(-1));
  expect(received.map((payload) => payload.equals(Buffer.alloc(size, 7)))).toEqual([true]);
});

/** After a collection of what nobody holds. */
function memoryKept(): number {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
