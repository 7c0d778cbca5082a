import { type Random, SeededRandom } from '@remora/base';
import { describe, expect, it } from 'vitest';
import { type Change, runCheck, WatchCheck, type WatchCheckOptions, type WatchEvent } from '../index.ts';

const put = (revision: number, key: string, value = `v${revision}`): Change => ({ revision, key, kind: 'put', value });
const changed = (change: Change): WatchEvent => ({ type: 'changed', ...change });
const told = (change: Change, watch = 'w'): WatchEvent => ({ type: 'event', watch, ...change });
const opened = (from: number, watch = 'w'): WatchEvent => ({ type: 'opened', watch, from, start: 'a', end: 'm' });
const progress = (revision: number): WatchEvent => ({ type: 'progress', watch: 'w', revision });
const resumed = (from: number): WatchEvent => ({ type: 'resumed', watch: 'w', from });
const compacted = (revision: number): WatchEvent => ({ type: 'compacted', watch: 'w', revision });
const closed = (upTo: number): WatchEvent => ({ type: 'closed', watch: 'w', upTo });

interface Row {
  readonly name: string;
  readonly events: readonly WatchEvent[];
  readonly expect: readonly string[];
  readonly options?: WatchCheckOptions;
}

const ALL = { allChangesKnown: true };
const rows: readonly Row[] = [
  {
    name: 'each change of the span once, in order, until the end',
    events: [
      ...[put(1, 'a'), put(2, 'b'), put(3, 'z'), put(4, 'a')].map(changed),
      opened(2),
      told(put(2, 'b')),
      told(put(4, 'a')),
      closed(4),
    ],
    options: ALL,
    expect: [],
  },
  {
    name: 'several keys of one revision',
    events: [changed(put(5, 'a')), changed(put(5, 'b')), opened(1), told(put(5, 'b')), told(put(5, 'a')), closed(5)],
    expect: [],
  },
  {
    name: 'a change that becomes known only after the watch was told of it',
    events: [opened(1), told(put(1, 'a')), told(put(2, 'a')), changed(put(1, 'a'))],
    expect: [],
  },
  {
    name: 'kinds that were not asked for do not come',
    events: [
      { type: 'opened', watch: 'w', from: 1, start: 'a', end: '', noDelete: true },
      changed({ revision: 1, key: 'a', kind: 'delete' }),
      told(put(2, 'zz')),
    ],
    expect: [],
  },
  {
    name: 'a stream that breaks and goes on where it was, or from an earlier revision on demand',
    events: [
      opened(1),
      ...[put(1, 'a'), put(2, 'a'), put(3, 'a')].map(changed),
      told(put(1, 'a')),
      resumed(2),
      told(put(2, 'a')),
      resumed(2),
      told(put(2, 'a')),
      told(put(3, 'a')),
    ],
    expect: [],
  },
  {
    name: 'a gap that compaction made',
    events: [
      opened(1),
      ...[put(1, 'a'), put(2, 'a'), put(3, 'a'), put(4, 'a')].map(changed),
      told(put(1, 'a')),
      { type: 'compaction', revision: 4 },
      compacted(4),
      resumed(4),
      told(put(4, 'a')),
      closed(4),
    ],
    expect: [],
  },
  {
    name: 'an event below another',
    events: [opened(1), told(put(2, 'a')), told(put(1, 'b'))],
    expect: ['watch: order'],
  },
  {
    name: 'an event at or below a progress mark',
    events: [opened(1), progress(3), told(put(3, 'a'))],
    expect: ['watch: order'],
  },
  {
    name: 'an event below where the watch began',
    events: [opened(3), told(put(2, 'a'))],
    expect: ['watch: order'],
  },
  {
    name: 'an event twice',
    events: [opened(1), told(put(1, 'a')), told(put(1, 'a'))],
    expect: ['watch: no repeats'],
  },
  {
    name: 'an event again after the stream broke',
    events: [opened(1), told(put(1, 'a')), told(put(2, 'a')), resumed(3), told(put(2, 'a'))],
    expect: ['watch: no repeats'],
  },
  {
    name: 'a change that is left out',
    events: [opened(1), changed(put(1, 'a')), changed(put(2, 'b')), told(put(2, 'b'))],
    expect: ['watch: complete'],
  },
  {
    name: 'a change that is left out, as a progress mark shows',
    events: [opened(1), changed(put(1, 'a')), progress(1)],
    expect: ['watch: complete'],
  },
  {
    name: 'a change that is left out at the end',
    events: [opened(1), changed(put(1, 'a')), closed(1)],
    expect: ['watch: complete'],
  },
  {
    name: 'a change that is left out and becomes known later',
    events: [opened(1), progress(5), changed(put(4, 'a'))],
    expect: ['watch: complete'],
  },
  {
    name: 'a change that only another watch was told of',
    events: [opened(1), opened(1, 'x'), told(put(1, 'a'), 'x'), told(put(2, 'a'))],
    expect: ['watch: complete'],
  },
  {
    name: 'half of a revision, and the stream goes on after it',
    events: [opened(1), changed(put(1, 'a')), changed(put(1, 'b')), told(put(1, 'a')), resumed(2), told(put(2, 'a'))],
    expect: ['watch: complete'],
  },
  {
    name: 'a change that was asked for again and does not come again',
    events: [
      opened(1),
      ...[put(1, 'a'), put(2, 'a'), put(3, 'a')].map((change) => told(change)),
      progress(3),
      resumed(2),
      told(put(3, 'a')),
    ],
    expect: ['watch: complete'],
  },
  {
    name: 'a stream that goes on too late',
    events: [opened(1), told(put(1, 'a')), resumed(4)],
    expect: ['watch: complete'],
  },
  {
    name: 'a gap larger than compaction made',
    events: [opened(1), { type: 'compaction', revision: 4 }, compacted(4), resumed(5)],
    expect: ['watch: complete'],
  },
  {
    name: 'compacted, and nobody compacted',
    events: [opened(1), compacted(4)],
    expect: ['watch: compacted'],
  },
  {
    name: 'compacted, and nothing of it was needed',
    events: [opened(5), { type: 'compaction', revision: 4 }, compacted(4)],
    expect: ['watch: compacted'],
  },
  {
    name: 'another value than what happened',
    events: [opened(1), changed(put(1, 'a', 'x')), told(put(1, 'a', 'y'))],
    expect: ['watch: true'],
  },
  {
    name: 'two watches that are told different things',
    events: [opened(1), opened(1, 'x'), told(put(1, 'a', 'x'), 'x'), told(put(1, 'a', 'y'))],
    expect: ['watch: true'],
  },
  {
    name: 'a key that is not watched',
    events: [opened(1), told(put(1, 'z'))],
    expect: ['watch: true'],
  },
  {
    name: 'an event that never happened',
    events: [opened(1), told(put(1, 'a'))],
    options: ALL,
    expect: ['watch: true'],
  },
];

describe('watch check', () => {
  it.each(rows)('$name: $expect', ({ events, options, expect: expected }) => {
    const found = runCheck(new WatchCheck(options), events);
    expect(found.map(({ property }) => property)).toEqual(expected);
  });

  it('what a correct server tells passes, and one event of it lost, repeated, swapped or changed is found', () => {
    let mutants = 0;
    for (let seed = 1; seed <= 60; seed++) {
      const random = new SeededRandom(seed);
      const events = serve(random);
      expect(runCheck(new WatchCheck(ALL), events)).toEqual([]);
      for (const mutate of [drop, repeat, swap, falsify]) {
        const mutant = mutate(random, events);
        if (mutant === undefined) continue;
        mutants += 1;
        expect(runCheck(new WatchCheck(ALL), mutant), `${mutate.name}, seed ${seed}`).not.toEqual([]);
      }
    }
    expect(mutants).toBeGreaterThan(200);
  });
});

/** Watches that come and go on a few keys, served as promised. */
function serve(random: Random): WatchEvent[] {
  const events: WatchEvent[] = [];
  const changes: Change[] = [];
  const at = new Map<string, number>(); // By watch: how many of all changes it has been past.
  const concerns = (watch: string, { key }: Change): boolean => watch.startsWith('all') || key < 'c';
  for (let turn = 0; turn < 120; turn++) {
    switch (random.int(6)) {
      case 0:
      case 1: {
        const revision = (changes.at(-1)?.revision ?? 0) + 1 + random.int(2);
        for (const key of ['a', 'b', 'c', 'd']) {
          if (random.int(3) > 0) continue;
          const change: Change = random.int(4) === 0 ? { revision, key, kind: 'delete' } : put(revision, key);
          changes.push(change);
          events.push(changed(change));
        }
        break;
      }
      case 2: {
        const watch = `${random.int(2) === 0 ? 'all' : 'some'}${turn}`;
        at.set(watch, changes.length);
        const from = (changes.at(-1)?.revision ?? 0) + 1;
        events.push({ type: 'opened', watch, from, start: 'a', end: watch.startsWith('all') ? '' : 'c' });
        break;
      }
      default:
        for (const [watch, seen] of at) {
          if (random.int(2) === 0) continue;
          const some = changes.slice(seen, seen + 1 + random.int(4));
          events.push(...some.filter((change) => concerns(watch, change)).map((change) => told(change, watch)));
          at.set(watch, seen + some.length);
        }
    }
  }
  const upTo = changes.at(-1)?.revision ?? 0;
  for (const [watch, seen] of at) {
    const left = changes.slice(seen).filter((change) => concerns(watch, change));
    events.push(...left.map((change) => told(change, watch)), { type: 'closed', watch, upTo });
  }
  return events;
}

type Mutation = (random: Random, events: readonly WatchEvent[]) => WatchEvent[] | undefined;

function anEvent(random: Random, events: readonly WatchEvent[]): number | undefined {
  const places = [...events.keys()].filter((i) => events[i]?.type === 'event');
  return places[random.int(Math.max(1, places.length))];
}

const drop: Mutation = (random, events) => {
  const at = anEvent(random, events);
  return at === undefined ? undefined : events.filter((_, i) => i !== at);
};

const repeat: Mutation = (random, events) => {
  const at = anEvent(random, events);
  const event = at === undefined ? undefined : events[at];
  return at === undefined || event === undefined ? undefined : [...events.slice(0, at), event, ...events.slice(at)];
};

const swap: Mutation = (_, events) => {
  for (const [i, first] of events.entries()) {
    const second = events[i + 1];
    if (first.type !== 'event' || second?.type !== 'event') continue;
    if (first.watch === second.watch && first.revision < second.revision) {
      return [...events.slice(0, i), second, first, ...events.slice(i + 2)];
    }
  }
  return undefined;
};

const falsify: Mutation = (random, events) => {
  const at = anEvent(random, events);
  return at === undefined
    ? undefined
    : events.map((event, i): WatchEvent => {
        if (i !== at || event.type !== 'event') return event;
        return { ...event, kind: 'put', value: 'false' };
      });
};
