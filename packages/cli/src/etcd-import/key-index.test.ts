import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SeededRandom } from '@remora/base';
import { expect, test } from 'vitest';
import { INDEX_LIMITS, type IndexLimits, KeyIndex } from './key-index.ts';
import { type IndexEntry, Runs } from './runs.ts';

const CHANGES = 5_000;

function changes(): readonly IndexEntry[] {
  const random = new SeededRandom(3);
  return Array.from({ length: CHANGES }, (_, at) => ({
    key: Buffer.from([random.int(4) * 85, random.int(256), ...Buffer.alloc(random.int(3), 0xff)]),
    deleted: random.int(4) === 0,
    lease: BigInt(random.int(3) - 1),
    at: at * 2 ** 33,
    length: at,
  }));
}

const rows: readonly { readonly name: string; readonly limits: IndexLimits }[] = [
  { name: 'in memory', limits: INDEX_LIMITS },
  { name: 'in several runs', limits: { ...INDEX_LIMITS, runKeysMax: 500 } },
  { name: 'in runs that are bounded by bytes', limits: { ...INDEX_LIMITS, runKeyBytesMax: 1_000 } },
  { name: 'in runs that are merged again and again', limits: { ...INDEX_LIMITS, runKeysMax: 100, runsMax: 3 } },
];
test.each(rows)('the newest change of each key counts, $name (KI1, KI2, KI3)', async ({ limits }) => {
  const all = changes();
  const newest = new Map(all.map((entry) => [entry.key.toString('latin1'), entry]));
  const expected = [...newest.values()].filter(({ deleted }) => !deleted);
  expected.sort((a, b) => Buffer.compare(a.key, b.key));
  const runs = new Runs();
  try {
    const index = new KeyIndex(runs, limits);
    for (let at = 0; at < CHANGES; at += 70) await index.add(all.slice(at, at + 70));
    for (let reading = 0; reading < 2; reading++) {
      const live: IndexEntry[] = [];
      for await (const entry of index.live()) live.push(entry);
      expect(live).toEqual(expected);
    }
  } finally {
    await runs.close();
  }
});

test('no temporary file is left', async () => {
  const parent = mkdtempSync(join(tmpdir(), 'remora-runs-'));
  try {
    const runs = new Runs(parent);
    const index = new KeyIndex(runs, { ...INDEX_LIMITS, runKeysMax: 10 });
    await index.add(changes().slice(0, 100));
    expect(readdirSync(parent)).toHaveLength(1);
    await runs.close();
    expect(readdirSync(parent)).toEqual([]);
  } finally {
    rmSync(parent, { recursive: true, force: true });
  }
});
