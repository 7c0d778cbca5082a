import { describe, expect, test } from 'vitest';
import { runCheck } from '../check.ts';
import type { Change } from './watch.ts';
import { type StreamMessage, WatchStreamCheck, type WatchStreamEvent } from './watch-stream.ts';

const put = (revision: number, key = 'a'): Change => ({ revision, key, kind: 'put' });
const changed = (...changes: readonly Change[]): readonly WatchStreamEvent[] =>
  changes.map((change) => ({ type: 'changed', ...change }));
const create = (from: number): WatchStreamEvent => ({ type: 'create', stream: 's', from, start: 'a', end: 'c' });
const ask = (acknowledged = 0): WatchStreamEvent => ({ type: 'ask', stream: 's', acknowledged });
const told = (message: Partial<StreamMessage> & { readonly watchId: number }): WatchStreamEvent => {
  const rest = { revision: 0, created: false, canceled: false, fragment: false, events: [] };
  return { type: 'message', stream: 's', message: { ...rest, ...message } };
};
const created = (watchId: number, revision: number) => told({ watchId, revision, created: true });
const events = (watchId: number, revision: number, ...of: readonly Change[]) => told({ watchId, revision, events: of });
const progress = (revision: number, watchId = -1) => told({ watchId, revision });

interface Row {
  readonly name: string;
  readonly events: readonly WatchStreamEvent[];
  /** The property that is broken; undefined: none. */
  readonly broken?: string;
}

const ROWS: readonly Row[] = [
  {
    name: 'a watch in the past, and progress behind its events',
    events: [create(1), ask(2), created(0, 2), events(0, 2, put(1), put(2)), progress(2), events(0, 3, put(3))],
  },
  {
    name: 'progress between the request of a watch in the past and its events',
    events: [create(1), ask(), progress(2), created(0, 2), events(0, 2, put(1))],
    broken: 'watch: order',
  },
  {
    name: 'the same, where the watch was asked for behind the progress request',
    events: [ask(), create(1), progress(2), created(0, 2), events(0, 2, put(1))],
  },
  {
    name: 'a second answer, with a watch that was asked for before its request',
    events: [ask(), create(1), ask(), progress(2), progress(2), created(0, 2), events(0, 2, put(1))],
    broken: 'watch: order',
  },
  {
    name: 'progress past events that have not come',
    events: [...changed(put(1)), create(1), created(0, 1), ask(), progress(2)],
    broken: 'watch: complete',
  },
  {
    name: 'progress between the fragments of a message',
    events: [
      create(1),
      created(0, 2),
      told({ watchId: 0, revision: 2, fragment: true, events: [put(1)] }),
      progress(2),
    ].concat([events(0, 2, put(2))]),
    broken: 'watch: order',
  },
  {
    name: 'a watch from now on that begins below the progress of its stream',
    events: [create(0), progress(9), created(0, 8)],
    broken: 'watch stream: progress',
  },
  {
    name: 'a watch of the future, whose stream has progress below its first revision',
    events: [create(9), created(0, 2), progress(4), events(0, 9, put(9))],
  },
  {
    name: 'a watch in the past that is asked for behind the progress of its stream',
    events: [create(0), created(0, 4), progress(4), create(2), created(1, 4), events(1, 4, put(3))],
  },
  {
    name: 'progress of one watch past its events',
    events: [create(1), created(0, 3), progress(3, 0), events(0, 3, put(2))],
    broken: 'watch: order',
  },
  {
    name: 'a header of events that is past other events',
    events: [create(1), created(0, 3), events(0, 3, put(1)), events(0, 3, put(2))],
    broken: 'watch: order',
  },
  {
    name: 'progress that goes back',
    events: [create(0), created(0, 1), progress(5), progress(4)],
    broken: 'watch stream: back',
  },
  {
    name: 'progress below what was acknowledged before it was asked for',
    events: [create(0), created(0, 1), ask(5), progress(4)],
    broken: 'watch stream: stale',
  },
  { name: 'a message for a watch that was not created', events: [progress(4, 7)], broken: 'watch stream: order' },
];

describe('the check of watch streams', () => {
  test.each(ROWS)('$name: $broken', ({ events: all, broken }) => {
    const found = runCheck(new WatchStreamCheck(), all).map(({ property }) => property);
    expect(found.slice(0, 1)).toEqual(broken === undefined ? [] : [broken]);
  });
});
