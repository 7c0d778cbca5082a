import { describe, expect, test } from 'vitest';
import { entries } from '../../test/support/core/core-kit.ts';
import { ENTRY_OVERHEAD_BYTES, RaftLog } from './log.ts';

const ZERO = { index: 0, term: 0 };
const terms = (log: RaftLog) => {
  const all: (number | undefined)[] = [];
  for (let i = log.firstIndex; i <= log.lastIndex; i++) all.push(log.term(i));
  return all;
};

describe('accepting entries', () => {
  const rows = [
    { name: 'appends what is new', add: entries(4, 2, 2), expect: [1, 1, 2, 2, 2] },
    { name: 'skips what is held', add: entries(2, 1, 2), expect: [1, 1, 2] },
    { name: 'does not truncate for a shorter, equal run', add: entries(1, 1), expect: [1, 1, 2] },
    { name: 'truncates at the first conflict', add: entries(2, 1, 3), expect: [1, 1, 3] },
    { name: 'replaces a longer tail', add: entries(2, 3), expect: [1, 3] },
    { name: 'takes nothing from nothing', add: [], expect: [1, 1, 2] },
  ];
  test.each(rows)('$name', ({ add, expect: expected }) => {
    const log = new RaftLog(ZERO, entries(1, 1, 1, 2));
    log.accept(add, 1);
    expect(terms(log)).toEqual(expected);
  });

  test('a committed entry is never truncated', () => {
    const log = new RaftLog(ZERO, entries(1, 1, 1));
    expect(() => log.accept(entries(2, 2), 2)).toThrow('never truncated');
  });
});

describe('where two logs can match', () => {
  const rows = [
    { name: 'at the same place when the term is the same', index: 3, term: 3, expect: { index: 3, term: 3 } },
    { name: 'before all newer terms', index: 5, term: 2, expect: { index: 2, term: 2 } },
    { name: 'at the end when asked past it', index: 9, term: 9, expect: { index: 5, term: 5 } },
    { name: 'nowhere in an older term', index: 5, term: 0, expect: { index: 0, term: 0 } },
  ];
  test.each(rows)('$name', ({ index, term, expect: expected }) => {
    expect(new RaftLog(ZERO, entries(1, 1, 2, 3, 5, 5)).findConflictByTerm(index, term)).toEqual(expected);
  });

  test('is unknown before the compacted part', () => {
    const log = new RaftLog({ index: 10, term: 4 }, entries(11, 5));
    expect(log.findConflictByTerm(11, 3)).toEqual({ index: 9, term: 0 });
    expect(log.findConflictByTerm(11, 4)).toEqual({ index: 10, term: 4 });
  });
});

describe('durability', () => {
  test('grows with each mark, in order', () => {
    const log = new RaftLog(ZERO, []);
    log.accept(entries(1, 1, 1), 0);
    expect(log.openMark().length).toBe(2);
    log.accept(entries(3, 1), 0);
    expect(log.openMark().map((e) => e.index)).toEqual([3]);
    expect(log.stableIndex).toBe(0);
    log.closeMark();
    expect(log.stableIndex).toBe(2);
    log.closeMark();
    expect(log.stableIndex).toBe(3);
    expect(log.hasUnpersisted).toBe(false);
  });

  test('a mark counts only as far as the log has held its entries ever since', () => {
    const log = new RaftLog(ZERO, entries(1, 1));
    log.accept(entries(2, 2, 2), 0);
    log.openMark(); // 2@2 3@2
    log.accept(entries(2, 3), 0);
    log.openMark(); // 2@3
    log.accept(entries(2, 2, 2), 0); // the same entries again: the first mark must not count for them
    log.openMark();
    log.closeMark();
    expect(log.stableIndex).toBe(1);
    log.closeMark();
    expect(log.stableIndex).toBe(1);
    log.closeMark();
    expect(log.stableIndex).toBe(3);
  });

  test('a truncation takes durability away, and what replaces it is handed out again', () => {
    const log = new RaftLog(ZERO, entries(1, 1, 1, 1));
    log.accept(entries(2, 2), 0);
    expect(log.stableIndex).toBe(1);
    expect(log.openMark()).toEqual(entries(2, 2));
  });
});

describe('cutting runs', () => {
  const log = new RaftLog({ index: 5, term: 1 }, entries(6, 1, 1, 1, 1));
  const size = ENTRY_OVERHEAD_BYTES + 3;
  const rows = [
    { name: 'stops at the limit', from: 6, to: 9, bytes: 2 * size, expect: [6, 7] },
    { name: 'gives one entry however large', from: 7, to: 9, bytes: 1, expect: [7] },
    { name: 'stops at the end', from: 8, to: 20, bytes: 1000, expect: [8, 9] },
    { name: 'stops where asked', from: 6, to: 6, bytes: 1000, expect: [6] },
    { name: 'gives nothing past the end', from: 10, to: 20, bytes: 1000, expect: [] },
  ];
  test.each(rows)('$name', ({ from, to, bytes, expect: expected }) => {
    expect(log.slice(from, to, bytes).map((e) => e.index)).toEqual(expected);
  });

  test('followers at one place share one array, until the log changes there', () => {
    const changing = new RaftLog(ZERO, entries(1, 1, 1));
    const first = changing.slice(1, 2, 1000);
    expect(changing.slice(1, 2, 1000)).toBe(first);
    changing.accept(entries(2, 2), 0);
    expect(changing.slice(1, 2, 1000)).toEqual([...entries(1, 1), ...entries(2, 2)]);
  });

  test('compaction keeps the term at the boundary and nothing before it', () => {
    const cut = new RaftLog(ZERO, entries(1, 1, 2, 3));
    cut.compactTo(2);
    cut.compactTo(1);
    expect([cut.term(1), cut.term(2), cut.term(3), cut.firstIndex]).toEqual([undefined, 2, 3, 3]);
    expect(() => cut.slice(2, 3, 1000)).toThrow('compacted');
  });
});
