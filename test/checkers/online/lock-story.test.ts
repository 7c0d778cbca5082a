import { type HolderState, type LockEvent, type LockState, stateAfter, type Waiter } from '@remora/lock';
import { describe, expect, it } from 'vitest';
import { LockStoryCheck, runCheck, type StoryEvent } from '../index.ts';

const lock = 'l';
const ID = { namespace: 'default', name: new Uint8Array([1]) };
const owner = (id: string) => ({ session: { lease: 7n, incarnation: 1 }, id });
const holder = (token: string, version: number): HolderState => ({
  ...{ owner: owner(token), version, depth: 1, lockTimeMs: 0, data: new Uint8Array(), mode: 'exclusive', permits: 0 },
  ...{ keepsData: false, delayMs: 0, delayed: false },
});
const waiter = (token: string): Waiter => ({
  ...{ owner: owner(token), position: 1, sinceMs: 0, mode: 'exclusive', permits: 0 },
});
const acquired = (token: string, version: number, waited = false): LockEvent => ({
  ...{ type: 'acquired', holder: holder(token, version), waited },
});
const released = (token: string, version: number): LockEvent => ({
  ...{ type: 'released', owner: owner(token), version, permits: 0 },
});
const queued = (token: string): LockEvent => ({ type: 'queued', waiter: waiter(token) });

/** What happened to one lock, by revisions. */
const STORY: readonly (readonly [number, readonly LockEvent[]])[] = [
  [1, [acquired('a', 1)]],
  [3, [queued('b')]],
  [4, [queued('c')]],
  [6, [released('a', 1), acquired('b', 6, true)]],
  [9, [released('b', 6), acquired('c', 9, true)]],
  [12, [released('c', 9)]],
];

function stateAt(revision: number): LockState | undefined {
  const events = STORY.flatMap(([at, some]) => (at <= revision ? some : []));
  return events.reduce<LockState | undefined>((state, event) => stateAfter(ID, state, event), undefined);
}

/** What a listener is told who begins at one revision and stops at another. */
function heard(listener: string, from: number, to: number, story = STORY): readonly StoryEvent[] {
  const told = story.filter(([revision]) => revision > from && revision <= to);
  return [
    { type: 'state', listener, lock, revision: from, state: stateAt(from) },
    ...told.flatMap(([revision, events]) =>
      events.map((event): StoryEvent => ({ type: 'event', listener, lock, revision, event })),
    ),
  ];
}

const without = (revision: number) => STORY.filter(([at]) => at !== revision);
const properties = (...events: readonly (readonly StoryEvent[])[]): readonly string[] => [
  ...new Set(
    runCheck(new LockStoryCheck(), events.flat()).map(({ property }) => property.slice('lock story: '.length)),
  ),
];

describe('what listeners are told of a lock', () => {
  it('is one story, wherever they begin and stop', () => {
    for (let from = 0; from < 12; from++) {
      for (let to = from; to <= 12; to++) {
        expect(properties(heard('x', 0, 12), heard('y', from, to))).toEqual([]);
      }
    }
  });

  it('begins anew after an interruption', () => {
    const interrupted: StoryEvent = { type: 'interrupted', listener: 'y', lock };
    expect(properties(heard('x', 0, 12), heard('y', 0, 3), [interrupted], heard('y', 9, 12))).toEqual([]);
  });

  it('may end in the middle of what one revision did', () => {
    expect(properties(heard('x', 0, 12), heard('y', 0, 6).slice(0, -1))).toEqual([]);
  });

  it.each([1, 3, 4, 6, 9])('is not complete without revision %i', (revision) => {
    const all = 'complete, and the same for all';
    expect(properties(heard('x', 0, 12), heard('y', 0, 12, without(revision)))).toContain(all);
  });

  it.each([3, 4, 6, 9])('does not make the states when nobody is told of revision %i', (revision) => {
    const made = properties(heard('x', 0, 12, without(revision)), heard('y', 10, 10));
    expect(made).toContain('the events make the states');
  });

  it('is told once, in order', () => {
    const twice = heard('x', 0, 4);
    expect(properties([...twice, ...twice.slice(1)])).toContain('in order, and once');
  });

  it('has versions that are revisions, and one holder', () => {
    const wrong: typeof STORY = [[1, [acquired('a', 1)]], ...without(1).slice(0, 2), [7, [acquired('b', 6, true)]]];
    expect(properties(heard('x', 0, 12, wrong))).toContain('it can be');
  });

  it.each([
    { name: 'the second of a queue', events: [released('a', 1), acquired('c', 6, true)] },
    { name: 'one who did not wait', events: [released('a', 1), acquired('z', 6)] },
  ])('does not grant it to $name', ({ events }) => {
    const wrong: typeof STORY = [...STORY.slice(0, 3), [6, events]];
    expect(properties(heard('x', 0, 6, wrong))).toEqual(['first come, first served']);
  });
});
