import { type Bytes, EMPTY_BYTES, equalBytes, nodeClock, type Row, SeededRandom, type Span } from '@remora/base';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CONF, DESCRIPTOR, memoryEngine } from '../../test/support/state-bed.ts';
import { outcomePageKey, stateKey } from '../state/keys.ts';
import { encodeRangeMeta } from '../state/meta-codec.ts';
import { NEVER_MERGED } from '../state/reshape/merging.ts';
import { takeSnapshot } from './snapshot-source.ts';
import { encodeSnapshot, SnapshotFormatError, SnapshotParser } from './snapshot-stream.ts';

const EVERYTHING: Span = { start: EMPTY_BYTES, end: EMPTY_BYTES };
const IDENTITY = { rangeId: 2, span: EVERYTHING, applied: { index: 7, term: 2 } };
const key = (i: number): Buffer => Buffer.from([3, i >> 8, i & 255]);

function stateRow(index = 7, rangeId = 2): Row {
  const meta = {
    ...{ applied: { index, term: 2 }, appliedAhead: 0, conf: CONF, descriptor: { ...DESCRIPTOR, rangeId } },
    ...{
      revision: 9,
      compactRevision: 1,
      rangeTimeMs: 1,
      wallMs: 0,
      keys: 0,
      bytes: 0,
      estimatedSince: 0,
      merging: NEVER_MERGED,
    },
  };
  return { key: stateKey(rangeId), value: encodeRangeMeta(meta) };
}

/** Values of these sizes, then the range's own rows. */
function rowsOf(sizes: readonly number[]): readonly Row[] {
  return [
    ...sizes.map((size, i) => ({ key: key(i), value: Buffer.alloc(size, i) })),
    { key: outcomePageKey(2, 1), value: Buffer.from('page') },
    stateRow(),
  ];
}

async function encode(rows: readonly Row[], identity = IDENTITY): Promise<Buffer> {
  async function* one() {
    yield rows;
  }
  const parts: Bytes[] = [];
  for await (const part of encodeSnapshot(identity, one())) parts.push(Buffer.from(part));
  return Buffer.concat(parts);
}

function parse(bytes: Buffer, piece = 64 * 1024, identity = IDENTITY): Row[] {
  const parser = new SnapshotParser(identity);
  const rows: Row[] = [];
  for (let at = 0; at < bytes.length; at += piece) {
    for (const found of parser.push(bytes.subarray(at, at + piece))) rows.push(...found);
  }
  expect(parser.finish().rows).toBe(rows.length);
  return rows;
}

function sameRows(a: readonly Row[], b: readonly Row[]): boolean {
  const pairs = a.map((row, i) => [row, b[i]] as const);
  return (
    a.length === b.length && pairs.every(([x, y]) => y && equalBytes(x.key, y.key) && equalBytes(x.value, y.value))
  );
}

describe('a snapshot stream', () => {
  test.each([1, 3, 1_000, 256 * 1024])('arrives whole, cut into pieces of %i bytes', async (piece) => {
    const rows = rowsOf([0, 10, piece < 1_000 ? 2_000 : 700_000, 5, 140_000 / (piece < 1_000 ? 100 : 1)]);
    expect(sameRows(parse(await encode(rows), piece), rows)).toBe(true);
  });

  test('holds no more than a frame, however much comes', async () => {
    const bytes = await encode(rowsOf(Array.from({ length: 2_000 }, () => 1_000)));
    const parser = new SnapshotParser(IDENTITY);
    let most = 0;
    for (let at = 0; at < bytes.length; at += 5_000) {
      for (const rows of parser.push(bytes.subarray(at, at + 5_000))) expect(rows.length).toBeLessThan(200);
      most = Math.max(most, parser.heldBytes);
    }
    expect(most).toBeLessThan(140_000);
  });

  test.each<{ name: string; bytes: () => Promise<Buffer> | Buffer; says: string }>([
    { name: 'is of another range', bytes: () => encode([], { ...IDENTITY, rangeId: 3 }), says: 'range 3' },
    {
      name: 'is of another position',
      bytes: () => encode(rowsOf([]), { ...IDENTITY, applied: { index: 7, term: 3 } }),
      says: '(7, term 3)',
    },
    { name: 'holds a state of another position', bytes: () => encode([stateRow(8)]), says: 'another position' },
    {
      name: 'names other bounds than its range has',
      bytes: () => encode([stateRow()], { ...IDENTITY, span: { start: key(0), end: key(9) } }),
      says: 'other bounds',
    },
    {
      name: 'holds a key outside its bounds',
      bytes: () => encode(rowsOf([1, 1, 1]), { ...IDENTITY, span: { start: key(0), end: key(2) } }),
      says: 'outside its range',
    },
    { name: 'holds no state', bytes: () => encode(rowsOf([1, 2]).slice(0, 3)), says: 'lacks' },
    { name: 'is empty', bytes: () => encode([]), says: 'lacks' },
    {
      name: 'holds a key of another range',
      bytes: () => encode([...rowsOf([]), stateRow(7, 3)]),
      says: 'outside its range',
    },
    { name: 'repeats a key', bytes: () => encode([rowsOf([1]), rowsOf([1])].flat()), says: 'out of order' },
    { name: 'goes back', bytes: () => encode([...rowsOf([1, 1]).slice(0, 2).reverse(), stateRow()]), says: 'order' },
    { name: 'is not one', bytes: () => Buffer.alloc(1_000, 'x'), says: 'not a snapshot' },
    { name: 'has a newer format', bytes: () => Buffer.from('remsnap\x04', 'latin1'), says: 'format 4' },
    { name: 'ends at once', bytes: () => Buffer.alloc(0), says: 'ends too early' },
    {
      name: 'announces a frame of 4 GiB',
      bytes: () => Buffer.concat([Buffer.from('remsnap\x02', 'latin1'), Buffer.alloc(8, 255)]),
      says: 'at most',
    },
    {
      name: 'has data after its end',
      bytes: async () => Buffer.concat([await encode(rowsOf([1])), Buffer.from('x')]),
      says: 'after its end',
    },
  ])('that $name is refused', async ({ bytes, says }) => {
    const stream = await bytes();
    expect(() => parse(stream)).toThrow(SnapshotFormatError);
    expect(() => parse(stream)).toThrow(says);
  });

  test('that lacks any of its frames, or has one twice, is refused', async () => {
    const stream = await encode(rowsOf([100_000, 100_000, 100_000, 100_000]));
    const frames: Buffer[] = [];
    for (let at = 8; at < stream.length; ) {
      const length = 8 + stream.readUInt32BE(at);
      frames.push(stream.subarray(at, at + length));
      at += length;
    }
    expect(frames.length).toBeGreaterThan(3);
    const magic = stream.subarray(0, 8);
    for (const [i, frame] of frames.entries()) {
      expect(() => parse(Buffer.concat([magic, ...frames.toSpliced(i, 1)]))).toThrow(SnapshotFormatError);
      expect(() => parse(Buffer.concat([magic, ...frames.toSpliced(i, 0, frame)]))).toThrow(SnapshotFormatError);
    }
  });

  test('that was changed or cut anywhere is refused', async () => {
    const rows = rowsOf([0, 10, 2_000, 5]);
    const stream = await encode(rows);
    fc.assert(
      fc.property(fc.nat(stream.length - 1), fc.integer({ min: 1, max: 255 }), fc.boolean(), (at, mask, cut) => {
        const changed = Buffer.from(cut ? stream.subarray(0, at) : stream);
        if (!cut) changed[at] = (changed[at] ?? 0) ^ mask;
        expect(() => parse(changed, 700)).toThrow(SnapshotFormatError);
      }),
      { seed: 7, numRuns: 500 },
    );
  });
});

test('a snapshot shows the moment it was taken, and its view is let go of when it is released', async () => {
  const engine = memoryEngine(nodeClock());
  const random = new SeededRandom(1);
  for (let i = 0; i < 3_000; i++) engine.put(key(i), Buffer.from(String(random.int(1_000_000))));
  engine.put(stateKey(2), stateRow().value);
  await engine.checkpoint();
  engine.put(key(1), Buffer.from('in memory'));
  const expected = [
    ...(await engine.scan({ start: Buffer.from([1]), end: Buffer.from([5]) })),
    { key: stateKey(2), value: stateRow().value },
  ];
  const snapshot = takeSnapshot(engine, {
    rangeId: 2,
    span: EVERYTHING,
    meta: { index: 7, term: 2, conf: CONF },
    bytes: 12,
  });
  expect(snapshot.bytes).toBe(12);
  engine.put(key(2), Buffer.from('later'));
  engine.delete(key(3));
  const parts: Bytes[] = [];
  for await (const part of snapshot.chunks) parts.push(Buffer.from(part));
  snapshot.release();
  expect(parse(Buffer.concat(parts))).toEqual(expected);

  const left = takeSnapshot(engine, {
    rangeId: 2,
    span: EVERYTHING,
    meta: { index: 7, term: 2, conf: CONF },
    bytes: 12,
  });
  const chunks = left.chunks[Symbol.asyncIterator]();
  for (let i = 0; i < 2; i++) await chunks.next(); // what comes before the rows
  left.release();
  await expect(chunks.next()).rejects.toThrow('after its release');
});
