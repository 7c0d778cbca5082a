import { nodeClock } from '@remora/base';
import { expect, test } from 'vitest';
import { memoryEngine } from '../state/test-bed.ts';
import { receiveSnapshot, replaceRows, takeSnapshot } from './snapshot.ts';

const SPAN = { start: Buffer.from([3]), end: Buffer.from([4]) };
const META = {
  index: 7,
  term: 2,
  conf: { voters: [1], votersOutgoing: [], learners: [], learnersNext: [], autoLeave: false },
};
const key = (i: number): Buffer => Buffer.from([3, i]);

test.each([1, 3, 1_000, 256 * 1024])(
  'a snapshot with values above a part arrives whole, cut into pieces of %i bytes',
  async (piece) => {
    const from = memoryEngine(nodeClock());
    const sizes = [0, 10, piece < 1_000 ? 2_000 : 700_000, 5, 140_000 / (piece < 1_000 ? 100 : 1)];
    for (const [i, size] of sizes.entries()) from.put(key(i), Buffer.alloc(size, i));
    const to = memoryEngine(nodeClock());
    to.put(key(99), Buffer.from('old'));
    let replaced = 0;
    const receiver = receiveSnapshot((rows) => replaceRows(to, [SPAN], rows, () => replaced++));
    const snapshot = takeSnapshot(from, META, [SPAN]);
    for await (const chunk of snapshot.chunks) {
      for (let at = 0; at < chunk.length; at += piece) await receiver.chunk(chunk.subarray(at, at + piece));
    }
    snapshot.release();
    await receiver.finish();
    expect(replaced).toBe(1);
    expect(await to.scan(SPAN)).toEqual(await from.scan(SPAN));
  },
);

test('a snapshot that ends within a part is not installed', async () => {
  const from = memoryEngine(nodeClock());
  from.put(key(1), Buffer.alloc(100));
  let installed = 0;
  const receiver = receiveSnapshot(async () => {
    installed++;
  });
  for await (const chunk of takeSnapshot(from, META, [SPAN]).chunks) await receiver.chunk(chunk.subarray(0, 50));
  await expect(receiver.finish()).rejects.toThrow('within a part');
  expect(installed).toBe(0);
});
