import { describe, expect, test } from 'vitest';
import {
  append,
  ELECTION_TICKS,
  entries,
  heartbeat,
  makeCore,
  ofType,
  run,
  take,
  tick,
} from '../../test/support/core/core-kit.ts';

describe('a follower', () => {
  test('acknowledges only after the fsync of the entries', () => {
    const core = makeCore();
    append(core, { term: 1, prev: [0, 0], entries: entries(1, 1) });
    const { messages, marks } = take(core);
    expect(messages).toEqual([]);
    for (const mark of marks) core.persisted(mark);
    expect(take(core).messages).toMatchObject([{ type: 'appendResponse', reject: false, index: 1, term: 1 }]);
  });

  test('acknowledges a repeated append only after the fsync of the first', () => {
    const core = makeCore();
    append(core, { term: 1, prev: [0, 0], entries: entries(1, 1) });
    const { marks } = take(core);
    append(core, { term: 1, prev: [0, 0], entries: entries(1, 1) });
    expect(take(core).messages).toEqual([]);
    for (const mark of marks) core.persisted(mark);
    expect(take(core).messages.length).toBe(1);
  });

  test('acknowledges batch by batch while several fsyncs are under way', () => {
    const core = makeCore();
    append(core, { term: 1, prev: [0, 0], entries: entries(1, 1) });
    const first = take(core).marks;
    append(core, { term: 1, prev: [1, 1], entries: entries(2, 1) });
    append(core, { term: 1, prev: [2, 1], entries: entries(3, 1) });
    const second = take(core).marks;
    for (const mark of first) core.persisted(mark);
    expect(ofType(take(core).messages, 'appendResponse').map((m) => m.index)).toEqual([1]);
    for (const mark of second) core.persisted(mark);
    expect(ofType(take(core).messages, 'appendResponse').map((m) => m.index)).toEqual([3]);
  });

  test('of which the disk has no record yet promises nothing in its term before it has', () => {
    const begins = { start: { index: 1, term: 1 }, applied: 1, hardState: { term: 1, vote: 0, commit: 1 } };
    const core = makeCore({ ...begins, unpersisted: true });
    append(core, { term: 1, prev: [1, 1] });
    const { messages, marks } = take(core);
    expect([messages, marks.length]).toEqual([[], 1]);
    for (const mark of marks) core.persisted(mark);
    expect(take(core).messages).toMatchObject([{ type: 'appendResponse', reject: false, index: 1, term: 1 }]);
  });

  test('an acknowledgement of an older term is not released', () => {
    const core = makeCore();
    append(core, { term: 1, prev: [0, 0], entries: entries(1, 1) });
    const { marks } = take(core);
    append(core, { from: 3, term: 2, prev: [0, 0], entries: entries(1, 2) });
    for (const mark of marks) core.persisted(mark);
    expect(take(core).messages).toEqual([]);
    expect(core.status().stableIndex).toBe(0);
  });

  test.each<{ name: string; prev: [number, number]; hint: [number, number] }>([
    { name: 'the end of a short log', prev: [9, 5], hint: [4, 3] },
    { name: 'the last entry that is not newer', prev: [4, 2], hint: [2, 1] },
  ])('a rejection names $name', ({ prev, hint }) => {
    const core = makeCore({ entries: entries(1, 1, 1, 3, 3), hardState: { term: 5, vote: 0, commit: 0 } });
    append(core, { term: 5, prev });
    expect(run(core)).toMatchObject([{ reject: true, index: prev[0], hintIndex: hint[0], hintTerm: hint[1] }]);
  });

  test('commits what it is known to share with the leader, and echoes it', () => {
    const core = makeCore({ entries: entries(1, 1, 1, 1), hardState: { term: 1, vote: 0, commit: 0 } });
    append(core, { term: 2, prev: [1, 1], entries: entries(2, 2), commit: 9 });
    expect(run(core)).toMatchObject([{ reject: false, index: 2, commit: 2 }]);
    expect(core.status()).toMatchObject({ commit: 2, lastIndex: 2, applied: 2 });
    heartbeat(core, 2, 2, 2);
    expect(run(core)).toMatchObject([{ type: 'heartbeatResponse', commit: 2 }]);
  });

  test('does not commit an unshared tail', () => {
    const core = makeCore({ entries: entries(1, 1, 1, 1), hardState: { term: 1, vote: 0, commit: 0 } });
    append(core, { term: 2, prev: [1, 1], commit: 3 });
    expect(core.commit).toBe(1);
  });

  test('answers a late append with its commit index', () => {
    const core = makeCore({ entries: entries(1, 1, 1), hardState: { term: 1, vote: 0, commit: 2 } });
    append(core, { term: 1, prev: [0, 0], entries: entries(1, 1) });
    expect(run(core)).toMatchObject([{ reject: false, index: 2 }]);
  });

  test('a commit index past the end of the log stops the process: an acknowledged entry was lost', () => {
    const core = makeCore();
    expect(() => heartbeat(core, 2, 1, 5)).toThrow('acknowledged entry was lost');
  });

  test('a merged heartbeat counts only from the leader of the current term', () => {
    const core = makeCore();
    heartbeat(core, 2, 1);
    tick(core, ELECTION_TICKS - 1);
    expect(core.heartbeatFrom(3)).toBe(false);
    expect(core.heartbeatFrom(2)).toBe(true);
    tick(core, ELECTION_TICKS - 1);
    expect(core.role).toBe('follower');
    heartbeat(core, 3, 2);
    expect(core.heartbeatFrom(2)).toBe(false);
    expect(makeCore().heartbeatFrom(0)).toBe(false);
  });
});

describe('a Ready', () => {
  test('tells role, term and leader when they changed, and each thing once', () => {
    const core = makeCore();
    heartbeat(core, 2, 4);
    expect(core.ready().soft).toEqual({ role: 'follower', term: 4, leader: 2 });
    expect(core.hasReady()).toBe(false);
    heartbeat(core, 2, 4);
    expect(core.ready()).not.toHaveProperty('soft');
  });

  test('a restart hands out what was committed and not applied, and nothing else', () => {
    const core = makeCore({
      entries: entries(3, 1, 1, 1),
      start: { index: 2, term: 1 },
      applied: 3,
      hardState: { term: 1, vote: 2, commit: 4 },
      restarted: true,
    });
    const { committed, marks } = take(core);
    expect(committed.map((e) => e.index)).toEqual([4]);
    expect(marks).toEqual([]);
  });
});
