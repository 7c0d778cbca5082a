import { SeededRandom } from '@remora/base';
import { expect, test } from 'vitest';
import { hashOfId, OutcomeEntries } from './outcome-entries.ts';
import { OutcomeIndex, type OutcomePlace } from './outcome-index.ts';

const PAGE_ENTRIES = 40;

/** Ids as clients make them; and such that all are in one bucket, of whatever tables there are here. */
function ids(count: number, alike: boolean): readonly string[] {
  const found: string[] = [];
  for (let i = 0; found.length < count; i++) {
    const id = `5d0b-4a53.${i.toString(36)}`;
    if (!alike || (hashOfId(id) & 0xff) === 7) found.push(id);
  }
  return found;
}

test.each([
  { name: 'as they come', known: ids(3_000, false), strangers: ids(6_000, false).slice(3_000) },
  { name: 'made up to meet in one bucket', known: ids(120, true), strangers: ids(240, true).slice(120) },
])('ids $name are found where they were set last, until the page is forgotten', ({ known, strangers }) => {
  const random = new SeededRandom(1);
  const index = new OutcomeIndex();
  const model = new Map<string, OutcomePlace>();
  const pages: OutcomeEntries[] = [new OutcomeEntries()];
  const isAsIn = (id: string): boolean => {
    const [found, expected] = [index.find(id, hashOfId(id)), model.get(id)];
    const held = expected === undefined || index.holds(expected);
    return held && found?.entries === expected?.entries && found?.at === expected?.at;
  };
  for (let step = 0; step < 6_000; step++) {
    if (pages.length > 1 && random.int(2 * PAGE_ENTRIES) === 0) {
      for (const page of pages.splice(0, 1 + random.int(pages.length - 1))) {
        index.forget(page);
        for (const [id, { entries }] of model) if (entries === page) model.delete(id);
      }
    }
    if ((pages.at(-1)?.count ?? 0) >= PAGE_ENTRIES) pages.push(new OutcomeEntries());
    const entries = pages.at(-1) ?? new OutcomeEntries();
    const requestId = known[random.int(known.length)] ?? '';
    entries.add(
      { requestId, deadlineMs: 1, outcome: { ok: true, revision: step, result: { type: 'noop' } } },
      hashOfId(requestId),
    );
    const place = { entries, at: entries.count - 1 };
    const before = model.get(requestId);
    index.set(requestId, place);
    model.set(requestId, place);
    if (before !== undefined && index.holds(before)) throw new Error('an earlier place is not held');
    if (step % 500 !== 0) continue;
    expect([...known, ...strangers].filter((id) => !isAsIn(id))).toEqual([]);
    expect(index.size).toBe(model.size);
  }
});

test('an id that only has the hash of another is another', () => {
  const index = new OutcomeIndex();
  const entries = new OutcomeEntries();
  const pair = ['7yzx', 'e6ad'];
  expect(new Set(pair.map(hashOfId)).size).toBe(1);
  for (const [at, requestId] of pair.entries()) {
    entries.add(
      { requestId, deadlineMs: 1, outcome: { ok: true, revision: at, result: { type: 'noop' } } },
      hashOfId(requestId),
    );
    expect(index.find(requestId, hashOfId(requestId))).toBeUndefined();
    index.set(requestId, { entries, at });
  }
  expect(pair.map((id) => index.find(id, hashOfId(id))?.at)).toEqual([0, 1]);
});
