import { describe, expect, test, vi } from 'vitest';
import type { Outcome } from './outcome-codec.ts';
import { Outcomes, type PageWrites } from './outcomes.ts';

const outcome = (revision: number): Outcome => ({ ok: true, revision, result: { type: 'noop' } });

/** The pages of several ranges, as they lie in an engine. */
class Stored {
  readonly rows = new Map<string, Uint8Array>();
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
    };
  }

  loaded(rangeId: number): Outcomes {
    const outcomes = new Outcomes();
    const own = [...this.rows].filter(([key]) => key.startsWith(`${rangeId}/`));
    const pages = own.map(([key, bytes]) => ({ number: Number(key.split('/')[1]), bytes }));
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

  test('is stored for the child without encoding again what lies there, and read back whole', () => {
    const { left, right, stored } = split();
    left.flush(stored.of(2));
    const before = stored.encoded;
    right.flush(stored.of(3));
    expect(stored.encoded - before).toBe(2); // b, which was not stored when it split, and its own
    expect([known(stored.loaded(2), IDS), known(stored.loaded(3), IDS)]).toEqual([
      ['a', 'b', 'left'],
      ['a', 'b', 'right'],
    ]);
  });

  test('is encoded when what was to be copied is gone', () => {
    const { right, stored } = split();
    stored.rows.clear();
    right.flush(stored.of(3));
    expect(known(stored.loaded(3), IDS)).toEqual(['a', 'b', 'right']);
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
    left.unite(right, { ownMs: 1, otherMs: 1 });
    expect([left.count, known(left, IDS), read.mock.calls.length]).toEqual([3_002, ['left', 'right'], 0]);
  });
});
