import { describe, expect, test } from 'vitest';
import { AutoCompactor } from './auto-compactor.ts';

const RETENTION_MS = 10_000;

describe('automatic compaction', () => {
  test('compacts at the revision that the leader saw one retention time ago', () => {
    const compactor = new AutoCompactor(RETENTION_MS);
    const at: (number | undefined)[] = [];
    for (let second = 0; second <= 12; second++) {
      at.push(compactor.tick(second * 1_000, { revision: 100 + second, compactRevision: 0 }));
    }
    expect(at).toEqual([...Array.from({ length: 10 }, () => undefined), 100, 101, 102]);
  });

  test('is late by one call at most, however far apart calls are (AU1)', () => {
    const compactor = new AutoCompactor(RETENTION_MS);
    for (let second = 0; second < 5; second++) {
      expect(compactor.tick(second * 1_000, { revision: 100 + second, compactRevision: 0 })).toBeUndefined();
    }
    expect(compactor.tick(34_000, { revision: 104, compactRevision: 0 })).toBe(104);
    expect(compactor.tick(64_000, { revision: 104, compactRevision: 104 })).toBeUndefined();
  });

  test('counts ages from the beginning of the term', () => {
    const compactor = new AutoCompactor(RETENTION_MS);
    compactor.tick(0, { revision: 100, compactRevision: 0 });
    compactor.reset();
    expect(compactor.tick(9_000, { revision: 100, compactRevision: 0 })).toBeUndefined();
    expect(compactor.tick(18_999, { revision: 100, compactRevision: 0 })).toBeUndefined();
    expect(compactor.tick(19_000, { revision: 100, compactRevision: 0 })).toBe(100);
  });

  test('keeps all versions without a retention time', () => {
    const compactor = new AutoCompactor(0);
    expect(compactor.tick(0, { revision: 100, compactRevision: 0 })).toBeUndefined();
    expect(compactor.tick(90_000, { revision: 100, compactRevision: 0 })).toBeUndefined();
  });
});
