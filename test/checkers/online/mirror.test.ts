import { expect, test } from 'vitest';
import { MirrorCheck, type MirrorEvent, runCheck } from '../index.ts';

const shows = (mirror: string, revision: number, content?: string): MirrorEvent => ({
  ...{ type: 'shows', mirror, span: 's/', revision, content },
});
const stored = (revision: number, content: string, span = 's/'): MirrorEvent => ({
  ...{ type: 'stored', span, revision, content },
});

test.each<{ readonly name: string; readonly events: readonly MirrorEvent[]; readonly expect: readonly string[] }>([
  {
    name: 'copies that are behind each other, and as stored',
    events: [shows('a', 5, 'x'), shows('b', 4, 'w'), stored(5, 'x'), shows('b', 5, 'x'), shows('a', 5), shows('a', 9)],
    expect: [],
  },
  { name: 'other keys are stored otherwise', events: [shows('a', 5, 'x'), stored(5, 'y', 'other/')], expect: [] },
  {
    name: 'a copy that differs from a read',
    events: [shows('a', 5, 'x'), stored(5, 'y')],
    expect: ['mirror: as stored'],
  },
  {
    name: 'a read that was before the copy was there',
    events: [stored(5, 'y'), shows('a', 5, 'x')],
    expect: ['mirror: as stored'],
  },
  { name: 'two copies that differ', events: [shows('a', 5, 'x'), shows('b', 5, '')], expect: ['mirror: as stored'] },
  {
    name: 'a copy that changes while its revision stays',
    events: [shows('a', 5, 'x'), shows('a', 5, 'xy')],
    expect: ['mirror: as stored'],
  },
  { name: 'a revision that goes back', events: [shows('a', 5), shows('a', 4)], expect: ['mirror: revisions grow'] },
  {
    name: 'a copy that says too early that it has a revision',
    events: [{ type: 'reached', mirror: 'a', asked: 7, revision: 6 }],
    expect: ['mirror: reached'],
  },
])('$name', ({ events, expect: found }) => {
  expect(runCheck(new MirrorCheck(), events).map(({ property }) => property)).toEqual(found);
});
