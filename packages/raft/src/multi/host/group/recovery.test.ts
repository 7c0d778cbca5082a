import { describe, expect, test } from 'vitest';
import { outlineOf } from '../../../core/log.ts';
import type { Entry, LogPosition } from '../../../core/types.ts';
import type { RecoveredGroup } from '../../ports.ts';
import { StateLostError, startState } from './recovery.ts';

function entries(from: number, to: number, term: number): Entry[] {
  return Array.from({ length: to - from + 1 }, (_, i) => ({
    index: from + i,
    term,
    type: 'normal' as const,
    data: Buffer.alloc(0),
  }));
}

const at = (index: number, term: number): LogPosition => ({ index, term });

describe('start state', () => {
  const recovered = (start: LogPosition, list: Entry[], commit = 0): RecoveredGroup => ({
    hardState: { term: 3, vote: 7, commit },
    start,
    outline: outlineOf(start, list),
    entries: list,
  });

  test('a new group starts empty and has nothing to write', () => {
    expect(startState({ groupId: 2, applied: at(0, 0), recovered: undefined })).toMatchObject({
      hardState: { term: 0, vote: 0, commit: 0 },
      start: at(0, 0),
      entries: [],
    });
  });

  test('a state machine without a log starts the log at what is applied', () => {
    const state = startState({ groupId: 2, applied: at(10, 5), recovered: undefined });
    expect(state).toMatchObject({
      hardState: { term: 5, vote: 0, commit: 10 },
      start: at(10, 5),
      restartAt: at(10, 5),
    });
  });

  test('entries before what is applied stay for followers, and the commit is at least the applied index', () => {
    const log = recovered(at(2, 1), entries(3, 9, 3), 4);
    expect(startState({ groupId: 2, applied: at(6, 3), recovered: log })).toMatchObject({
      hardState: { term: 3, vote: 7, commit: 6 },
      start: at(2, 1),
      entries: log.entries,
    });
  });

  test.each([
    { name: 'ends before what is applied', applied: at(12, 3) },
    { name: 'holds another branch at what is applied', applied: at(6, 2) },
  ])('a log that $name restarts there and keeps its vote', ({ applied }) => {
    const state = startState({ groupId: 2, applied, recovered: recovered(at(2, 1), entries(3, 9, 3)) });
    expect(state).toMatchObject({
      hardState: { term: 3, vote: 7, commit: applied.index },
      start: applied,
      entries: [],
      restartAt: applied,
    });
  });

  test('a snapshot of a newer term than the durable one brings its term, without a vote', () => {
    const state = startState({ groupId: 2, applied: at(20, 8), recovered: recovered(at(0, 0), entries(1, 9, 3)) });
    expect(state.hardState).toEqual({ term: 8, vote: 0, commit: 20 });
  });

  test('a commit beyond the end of the log is cut to it', () => {
    const state = startState({ groupId: 2, applied: at(0, 0), recovered: recovered(at(0, 0), entries(1, 5, 3), 9) });
    expect(state.hardState.commit).toBe(5);
  });

  test('a gap between what is applied and the log is fatal and says what to do', () => {
    const log = recovered(at(8, 3), entries(9, 12, 3));
    expect(() => startState({ groupId: 2, applied: at(5, 3), recovered: log })).toThrow(StateLostError);
    expect(() => startState({ groupId: 2, applied: at(5, 3), recovered: log })).toThrow(
      /group 2 is damaged: its log starts after index 8.* back at index 5/,
    );
  });

  test('a log that begins at what is applied, in another term, is fatal', () => {
    const log = recovered(at(5, 2), []);
    expect(() => startState({ groupId: 2, applied: at(5, 3), recovered: log })).toThrow(
      /starts after \(5, term 2\), but the state is at \(5, term 3\)/,
    );
  });
});
