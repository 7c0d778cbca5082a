import { silentLogger } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import type { KvEvent } from '@remora/protocol';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { del, HISTORY, put, StateBed } from '../../../test/support/state-bed.ts';
import { HistoryCollector } from '../../range/history-collector.ts';
import { readHistory } from './kv-history.ts';

/** With a byte that the history's keys escape, and keys that are prefixes of others. */
const KEYS = ['a', 'a\0', 'ab', 'b'];
const change = fc.record({ key: fc.constantFrom(...KEYS), deleted: fc.boolean(), length: fc.nat({ max: 20 }) });

interface ChangeAsked {
  readonly key: string;
  readonly deleted: boolean;
  readonly length: number;
}

/** A change as it was made: `put 3` or `delete 4`, with its revision. */
type Change = readonly [key: string, text: string, revision: number];

async function changed(bed: StateBed, changes: readonly ChangeAsked[]): Promise<Change[]> {
  const made: Change[] = [];
  for (const { key, deleted, length } of changes) {
    const before = bed.state.revision;
    const op = deleted ? del(key) : put(key, 'v'.repeat(length));
    await bed.ok({ type: 'txn', txn: { compare: [], success: [op], failure: [] } });
    const { revision } = bed.state;
    if (revision > before) made.push([key, deleted ? `delete ${revision}` : `put ${revision} ${length}`, revision]);
  }
  return made;
}

/** All pages. */
async function historyOf(
  bed: StateBed,
  key: string,
  { limit, bytes }: { readonly limit: number; readonly bytes: number },
) {
  const found: KvEvent[] = [];
  const view = bed.engine.view();
  for (let before = 0; ; ) {
    const query = { key: Buffer.from(key), before, limit, bytes };
    const page = await readHistory(view, query, bed.state.compactRevision);
    expect(page.versions.length).toBeLessThanOrEqual(limit);
    found.push(...page.versions);
    if (!page.more) break;
    before = page.versions.at(-1)?.kv.modRevision ?? 0;
    expect(before).toBeGreaterThan(0);
  }
  view.release();
  return found.map(({ type, kv }) =>
    type === 'put' ? `put ${kv.modRevision} ${kv.value.length}` : `delete ${kv.modRevision}`,
  );
}

async function collected(bed: StateBed): Promise<void> {
  const collector = new HistoryCollector(bed.engine, HISTORY, { clock: new ManualClock(), logger: silentLogger });
  collector.collect(bed.state.compactRevision);
  for (let turn = 0; turn < 1_000; turn++) await Promise.resolve();
}

test('the history of a key is what was done to it, the newest first, back to what a compaction left', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(change, { maxLength: 25 }),
      fc.integer({ min: 1, max: 5 }),
      fc.integer({ min: 1, max: 40 }),
      fc.option(fc.nat({ max: 25 })),
      fc.boolean(),
      async (changes, limit, bytes, compactAt, collects) => {
        const bed = new StateBed();
        const made = await changed(bed, changes);
        const compacted = compactAt === null ? undefined : made[compactAt]?.[2];
        if (compacted !== undefined) await bed.ok({ type: 'compact', revision: compacted });
        if (collects) await collected(bed);
        for (const key of KEYS) {
          const of = made.filter(([changedKey]) => changedKey === key);
          const later = of.filter(([, , revision]) => revision > (compacted ?? 0));
          const last = of.findLast(([, , revision]) => revision <= (compacted ?? 0));
          const kept = last === undefined || last[1].startsWith('delete') ? [] : [last];
          const expected = [...kept, ...later].map(([, text]) => text).reverse();
          expect(await historyOf(bed, key, { limit, bytes })).toEqual(expected);
        }
      },
    ),
    { numRuns: 60 },
  );
});
