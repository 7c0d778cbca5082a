import { describe, expect, test, vi } from 'vitest';
import type { Outcome } from './outcome-codec.ts';
import { type LoadedPage, type Loan, Outcomes, type PageWrites } from './outcomes.ts';

const outcome = (revision: number): Outcome => ({ ok: true, revision, result: { type: 'noop' } });

/** The pages of several ranges, as they lie in an engine. */
class Stored {
  readonly rows = new Map<string, Uint8Array>();
  readonly loans = new Map<number, Loan>();
  encoded = 0;

  of(rangeId: number): PageWrites {
    return {
      put: (page, bytes) => {
        this.encoded++;
        this.rows.set(`${rangeId}/${page}`, bytes);
      },
      copy: (page, of) => {
        const row = this.rows.get(`${of.rangeId}/${of.page}`);
        if (row !== undefined) this.rows.set(`${rangeId}/${page}`, row);
        return row !== undefined;
      },
      delete: (page) => this.rows.delete(`${rangeId}/${page}`),
      borrow: (loan) => (loan === undefined ? this.loans.delete(rangeId) : this.loans.set(rangeId, loan)),
    };
  }

  loaded(rangeId: number): Outcomes {
    const outcomes = new Outcomes();
    const own = [...this.rows].filter(([key]) => key.startsWith(`${rangeId}/`));
    const pages: LoadedPage[] = own.map(([key, bytes]) => ({ number: Number(key.split('/')[1]), bytes }));
    const loan = this.loans.get(rangeId);
    for (const { number, of } of loan?.pages ?? []) {
      const bytes = this.rows.get(`${loan?.rangeId}/${of}`) ?? Buffer.of();
      pages.push({ number, bytes, copyOf: { rangeId: loan?.rangeId ?? 0, page: of } });
    }
    outcomes.load(pages.sort((a, b) => a.number - b.number));
    return outcomes;
  }
}

function remember(outcomes: Outcomes, ids: readonly string[], deadlineMs: number): void {
  for (const [i, requestId] of ids.entries()) outcomes.remember({ requestId, deadlineMs, outcome: outcome(i) }, 10);
}

const known = (outcomes: Outcomes, ids: readonly string[]): readonly string[] =>
  ids.filter((id) => outcomes.recall(id) !== undefined);
const IDS = ['a', 'b', 'left', 'right'];

test('an outcome is encoded as it is remembered, not in the step in which a checkpoint begins', () => {
  const [outcomes, stored] = [new Outcomes(), new Stored()];
  const read = vi.fn(() => 1_000);
  for (let i = 0; i < 2_100; i++) {
    const entry = { requestId: `r${i}`, outcome: outcome(i), deadlineMs: 1_000 };
    outcomes.remember(entry, 10);
    Object.defineProperty(entry, 'deadlineMs', { get: read });
  }
  outcomes.flush(stored.of(2));
  expect([stored.rows.size, read.mock.calls.length]).toEqual([3, 0]);
  expect(stored.loaded(2).count).toBe(2_100);
});

describe('the memory of outcomes behind a split', () => {
  function split() {
    const [left, stored] = [new Outcomes(), new Stored()];
    remember(left, ['a'], 100);
    left.flush(stored.of(2));
    remember(left, ['b'], 200);
    const right = left.fork(2);
    remember(left, ['left'], 300);
    remember(right, ['right'], 300);
    return { left, right, stored };
  }

  test('is that of before in both, and each has its own from then on', () => {
    const { left, right } = split();
    expect([known(left, IDS), known(right, IDS)]).toEqual([
      ['a', 'b', 'left'],
      ['a', 'b', 'right'],
    ]);
    expect([left.count, right.count, left.bytes, right.bytes]).toEqual([3, 3, 30, 30]);
    expect([...right.askable(150)].map(({ requestId }) => requestId)).toEqual(['b', 'right']);
  });

  test('is named by the child as it begins, then stored without encoding again what lies there, and read back whole', () => {
    const { left, right, stored } = split();
    left.flush(stored.of(2));
    const before = stored.encoded;
    const lent = { rangeId: 2, pages: [{ number: 1, of: 1 }] };
    for (const [loan, pages] of [
      [lent, 2], // b, which was not stored when it split, and its own
      [undefined, 3],
    ] as const) {
      right.flush(stored.of(3));
      expect(stored.encoded - before).toBe(2);
      expect(stored.loans.get(3)).toEqual(loan);
      expect([...stored.rows.keys()].filter((key) => key.startsWith('3/'))).toHaveLength(pages);
      expect([known(stored.loaded(2), IDS), known(stored.loaded(3), IDS)]).toEqual([
        ['a', 'b', 'left'],
        ['a', 'b', 'right'],
      ]);
    }
  });

  test('is the child’s own with the next checkpoint also after a restart', () => {
    const { left, right, stored } = split();
    left.flush(stored.of(2));
    right.flush(stored.of(3));
    stored.loaded(3).flush(stored.of(3));
    for (const key of stored.rows.keys()) if (key.startsWith('2/')) stored.rows.delete(key);
    expect([known(stored.loaded(3), IDS), stored.loans.size]).toEqual([['a', 'b', 'right'], 0]);
  });

  test('is not let go by the parent before the child takes part in checkpoints', () => {
    const { left, right, stored } = split();
    right.flush(stored.of(3));
    left.expire(150);
    left.flush(stored.of(2));
    expect(known(stored.loaded(3), IDS)).toEqual(['a', 'b', 'right']);
    left.settled();
    left.flush(stored.of(2));
    right.flush(stored.of(3));
    expect([known(stored.loaded(2), IDS), known(stored.loaded(3), IDS)]).toEqual([
      ['b', 'left'],
      ['a', 'b', 'right'],
    ]);
  });

  test('goes when it has expired, in each for itself, and nothing of it stays in memory', () => {
    const { left, right } = split();
    right.expire(250);
    expect([known(left, IDS), known(right, IDS)]).toEqual([['a', 'b', 'left'], ['right']]);
    right.expire(350);
    expect([right.count, right.bytes, known(right, IDS)]).toEqual([0, 0, []]);
    expect(left.count).toBe(3);
  });

  test('is found through split after split', () => {
    const { right } = split();
    const third = right.fork(3).fork(4);
    remember(third, ['later'], 400);
    expect(known(third, [...IDS, 'later'])).toEqual(['a', 'b', 'right', 'later']);
    third.expire(350);
    expect(known(third, [...IDS, 'later'])).toEqual(['later']);
  });

  test('is united again without anything twice', () => {
    const { left, right } = split();
    left.unite(right, { ownMs: 1, otherMs: 1 });
    expect([left.count, known(left, IDS)]).toEqual([4, IDS]);
  });

  test('is that of the later attempt where the time of the merge ends the earlier one, also read back from disk', () => {
    for (const restarts of [false, true]) {
      const stored = new Stored();
      const before = new Outcomes();
      remember(before, ['a'], 100);
      const forked = before.fork(2);
      const again = { requestId: 'a', deadlineMs: 300, outcome: outcome(7) };
      expect(forked.find('a', 150)).toBeUndefined();
      forked.remember(again, 10);
      for (const [rangeId, outcomes] of [
        [2, before],
        [3, forked],
      ] as const)
        outcomes.flush(stored.of(rangeId));
      const [left, right] = restarts ? [stored.loaded(2), stored.loaded(3)] : [before, forked];
      left.unite(right, { ownMs: 90, otherMs: 150 });
      expect(left.find('a', 150)).toEqual(again.outcome);
    }
  });

  test('is not gone through by a merge where both have shared it since', () => {
    const left = new Outcomes();
    const read = vi.fn(() => 1_000);
    for (let i = 0; i < 3_000; i++) {
      const entry = { requestId: `r${i}`, outcome: outcome(i), deadlineMs: 1_000 };
      left.remember(entry, 10);
      Object.defineProperty(entry, 'deadlineMs', { get: read });
    }
    const right = left.fork(2);
    remember(left, ['left'], 300);
    remember(right, ['right'], 300);
    read.mockClear();
    left.unite(right, { ownMs: 1, otherMs: 1 });
    expect([left.count, known(left, IDS), read.mock.calls.length]).toEqual([3_002, ['left', 'right'], 0]);
  });
});
