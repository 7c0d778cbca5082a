/** Writers of ranges that grow faster than they are split, are not split at all, or cannot be. */
import type { ServiceError } from '@remora/base';
import { expect, test } from 'vitest';
import type { RangeReplica } from '../../../packages/dataserver/src/range/range-replica.ts';
import { put } from '../../../packages/dataserver/test/support/state-bed.ts';
import { GATEWAY_NODE, RangeCluster } from './bed.ts';

const SIZES = { checkBytes: 10_000, splitBytes: 20_000, maxBytes: 40_000 };
const VALUE = 'v'.repeat(1_000);
const WRITERS = 4;
const PAUSE_MS = 10;

/** Writers that put as fast as they may, and ask again as often as they are refused for the moment. */
class Writers {
  readonly refused: ServiceError[] = [];
  readonly failed: ServiceError[] = [];
  written = 0;
  stopped = false;
  readonly #bed: RangeCluster;
  readonly #keyOf: (n: number) => string;
  #next = 0;

  constructor(bed: RangeCluster, keyOf: (n: number) => string) {
    this.#bed = bed;
    this.#keyOf = keyOf;
    for (let i = 0; i < WRITERS; i++) this.#write();
  }

  #write(): void {
    if (!this.stopped) this.#put(this.#keyOf(this.#next++));
  }

  #put(key: string): void {
    const { clock } = this.#bed;
    const backend = this.#bed.node(GATEWAY_NODE).running?.backend;
    backend?.command({ type: 'kv', op: put(key, VALUE) }, { timeoutMs: 10_000 }, (error) => {
      if (error?.code === 'RESOURCE_EXHAUSTED') {
        this.refused.push(error);
        const { retryAfterMs } = error.details as { retryAfterMs: number };
        clock.setTimer(retryAfterMs, () => this.#put(key));
        return;
      }
      if (error === undefined) this.written++;
      else this.failed.push(error);
      clock.setTimer(PAUSE_MS, () => this.#write());
    });
  }
}

/** Keys in an order that has nothing to do with that in which they are written. */
const scattered = (n: number): string => `k${(n * 7_919) % 10_007}`;

function leading(bed: RangeCluster): readonly RangeReplica[] {
  return [...bed.nodes.values()].flatMap(({ running }) =>
    [...(running?.store?.replicas() ?? [])].filter(({ serving }) => serving),
  );
}

const largest = (bed: RangeCluster): number => Math.max(...leading(bed).map(({ state }) => state.bytes));

async function begun(keyOf: (n: number) => string) {
  const bed = new RangeCluster(1, { borders: [], splits: [], sizes: SIZES });
  await bed.start();
  return { bed, writers: new Writers(bed, keyOf) };
}

test('wait for its split, and go on when it is done', async () => {
  const { bed, writers } = await begun(scattered);
  bed.ranges.desk.mood = 'silent';
  await bed.run(1_200);
  expect(writers.refused.length).toBeGreaterThan(0);
  expect(bed.ranges.splits).toBe(0);
  expect(leading(bed).map(({ splitReasons }) => splitReasons.remark)).toEqual([expect.stringContaining('writes are')]);
  const { written } = writers;
  bed.ranges.desk.mood = 'answering';
  await bed.run(2_000);
  writers.stopped = true;
  await bed.run(1_000);
  expect(bed.ranges.splits).toBeGreaterThan(1);
  expect(writers.written).toBeGreaterThan(1.5 * written);
  expect(writers.failed).toEqual([]);
  // Writes that are under way when it is full are too many by a few.
  expect(largest(bed)).toBeLessThan(SIZES.maxBytes + 2 * WRITERS * VALUE.length);
});

test('do not wait for a split that is refused', async () => {
  const { bed, writers } = await begun(scattered);
  bed.ranges.desk.mood = 'refusing';
  await bed.run(1_000);
  expect([writers.refused, writers.failed, bed.ranges.splits]).toEqual([[], [], 0]);
  expect(largest(bed)).toBeGreaterThan(2 * SIZES.maxBytes);
  const [remark] = leading(bed).map(({ splitReasons }) => splitReasons.remark);
  expect(remark).toBe('it should be split, but the split was refused: splits are paused');
});

test('do not wait where one key has all of it', async () => {
  const { bed, writers } = await begun(() => 'one');
  await bed.run(1_000);
  expect([writers.refused, writers.failed, bed.ranges.splits]).toEqual([[], [], 0]);
  expect(writers.written * VALUE.length).toBeGreaterThan(2 * SIZES.maxBytes);
  const [remark] = leading(bed).map(({ splitReasons }) => splitReasons.remark);
  expect(remark).toContain('one key, lock or lease has all of it');
});
