import { SeededRandom } from '@remora/base';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { SnapshotBed, testChunks, testSource } from '../../../test/support/transport/snapshot-bed.ts';

const WINDOW = 3;
const CHUNK_BYTES_MAX = 16;

/** One transfer under random breaks, blocked links and restarts of the receiver, with a receiver of random pace. */
async function runTransfer(seed: number, chunks: number, breakPerMille: number, restarts: boolean) {
  const random = new SeededRandom(seed);
  const bed = new SnapshotBed(seed, { windowChunks: WINDOW, chunkBytes: CHUNK_BYTES_MAX });
  bed.network.setLink({ from: 1, to: 2 }, { snapshotBreakPerMille: breakPerMille, delayMs: random.int(5) });
  bed.network.setLink({ from: 2, to: 1 }, { snapshotBreakPerMille: breakPerMille, delayMs: random.int(5) });
  bed.receiver.delayMs = () => random.int(8);
  const source = testSource(chunks);
  const sending = bed.send(source.chunks);
  let restarted = 0;
  for (let ms = 0; sending.outcome === undefined; ms++) {
    await bed.run(1);
    if (random.int(200) === 0) bed.network.breakSnapshots();
    if (random.int(400) === 0) {
      bed.network.setLink({ from: 2, to: 1 }, { blocked: true });
      await bed.run(random.int(restarts ? 1_500 : 300));
      bed.network.setLink({ from: 2, to: 1 }, { blocked: false });
    }
    if (restarts && random.int(500) === 0) {
      restarted++;
      await bed.restartReceiver();
    }
    expect(ms).toBeLessThan(100_000);
  }
  return { bed, sending, source, restarted };
}

test('a transfer under breaks installs each chunk once and in order, or fails and installs nothing twice', async () => {
  let resumed = 0;
  let installed = 0;
  let failed = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.integer(),
      fc.integer({ min: 0, max: 60 }),
      fc.constantFrom(0, 20, 100),
      fc.boolean(),
      async (seed, chunks, breakPerMille, restarts) => {
        const { bed, sending, source } = await runTransfer(seed, chunks, breakPerMille, restarts);
        const { receiver, network } = bed;
        const whole = testChunks(chunks);
        expect(receiver.snapshots.length).toBeLessThanOrEqual(1);
        const got = receiver.snapshots[0]?.chunks ?? [];
        expect(got).toEqual(whole.slice(0, got.length));
        expect(receiver.finishes).toBeLessThanOrEqual(1);
        expect(source.pulled).toBeLessThanOrEqual(chunks);
        if (sending.outcome === 'installed') {
          expect(got).toEqual(whole);
          expect(receiver.installed).toBe(1);
          installed++;
        } else {
          failed++;
        }
        resumed += sending.resumed;
        const { sendBufferedMost, receiveBufferedMost } = network.snapshotTraffic;
        expect(sendBufferedMost).toBeLessThanOrEqual(WINDOW * (CHUNK_BYTES_MAX + 7));
        expect(receiveBufferedMost).toBeLessThanOrEqual(WINDOW * CHUNK_BYTES_MAX);
        await bed.run(5_000); // holds and late streams end
        expect(network.snapshotTraffic).toMatchObject({ sendBuffered: 0, receiveBuffered: 0 });
        if (receiver.snapshots.length === 1) expect(receiver.installed + receiver.aborts.length).toBeGreaterThan(0);
      },
    ),
    { numRuns: 60, seed: 20 },
  );
  // The runs met what they are about.
  expect(resumed).toBeGreaterThan(20);
  expect(installed).toBeGreaterThan(20);
  expect(failed).toBeGreaterThan(2);
});
