import { type Random, SeededRandom } from '@remora/base';
import { describe, expect, it } from 'vitest';
import { LockCheck, type LockEvent, type LockMode, runCheck } from '../index.ts';

const lock = 'l';
const asked = (owner: string, mode: LockMode = 'exclusive'): LockEvent => ({ type: 'asked', lock, owner, mode });
const queued = (owner: string): LockEvent => ({ type: 'queued', lock, owner });
const gone = (owner: string): LockEvent => ({ type: 'gone', lock, owner });
const left = (owner: string): LockEvent => ({ type: 'left', lock, owner });
const resumed = (owner: string, version: number): LockEvent => ({ type: 'resumed', lock, owner, version });
const accepted = (owner: string, version: number): LockEvent => ({ type: 'accepted', lock, owner, version });
const converting = (owner: string): LockEvent => ({ type: 'converting', lock, owner });
const capacity = (count: number, settled = false): LockEvent => ({ type: 'capacity', lock, capacity: count, settled });
const permits = (owner: string, version: number, count: number): LockEvent => ({
  ...{ type: 'granted', lock, owner, version },
  ...{ mode: 'permits', permits: count },
});
const wants = (owner: string, count: number): LockEvent => ({
  ...{ type: 'asked', lock, owner },
  ...{ mode: 'permits', permits: count },
});
const granted = (owner: string, version: number, mode: LockMode = 'exclusive'): LockEvent => ({
  type: 'granted',
  lock,
  owner,
  mode,
  version,
});

interface Row {
  readonly name: string;
  readonly events: readonly LockEvent[];
  readonly expect: readonly string[];
}

const rows: readonly Row[] = [
  {
    name: 'one after another, with a re-entry',
    events: [asked('a'), granted('a', 1), granted('a', 1), asked('b'), queued('b'), left('a'), granted('b', 2)],
    expect: [],
  },
  {
    name: 'readers together, who hear of their grant in any order',
    events: [
      asked('w'),
      granted('w', 1),
      asked('r', 'shared'),
      queued('r'),
      asked('s', 'shared'),
      queued('s'),
      left('w'),
      granted('s', 2, 'shared'),
      granted('r', 2, 'shared'),
    ],
    expect: [],
  },
  {
    name: 'a lower version of one who asked before the higher one was known',
    events: [asked('a'), asked('b'), granted('b', 2), left('b'), granted('a', 1)],
    expect: [],
  },
  {
    name: 'a waiter that gave up may be passed',
    events: [asked('h'), granted('h', 1), asked('a'), queued('a'), asked('b'), gone('a'), left('h'), granted('b', 2)],
    expect: ['lock: who asks is answered'].slice(1),
  },
  {
    name: 'one that may have lost its place, and hears later that it was granted the lock before',
    events: [
      ...[granted('h', 1, 'permits'), asked('a', 'permits'), queued('a'), asked('b', 'permits')],
      ...[granted('b', 2, 'permits'), left('b'), gone('a'), asked('c', 'permits'), granted('c', 3, 'permits')],
      granted('a', 2, 'permits'),
    ],
    expect: [],
  },
  {
    name: 'one that lost its place, and was granted the lock before it asked',
    events: [granted('h', 5), left('h'), asked('a'), gone('a'), granted('a', 4)],
    expect: ['lock: versions grow'],
  },
  {
    name: 'one that goes on with what it had',
    events: [asked('a'), granted('a', 1), left('a'), resumed('a', 1), left('a'), asked('b'), granted('b', 2)],
    expect: [],
  },
  {
    name: 'one that goes on with what another one has',
    events: [asked('a'), granted('a', 1), left('a'), asked('b'), granted('b', 2), resumed('a', 1)],
    expect: ['lock: one holder', 'lock: versions grow'],
  },
  {
    name: 'a reader that becomes a writer and a reader again, which lets others in who hear of it first',
    events: [
      granted('r', 1, 'shared'),
      asked('s', 'shared'),
      converting('r'),
      granted('r', 2),
      converting('r'),
      granted('s', 4, 'shared'),
      granted('r', 3, 'shared'),
    ],
    expect: [],
  },
  {
    name: 'a writer that becomes a reader under its old version',
    events: [granted('r', 2), converting('r'), granted('r', 1, 'shared')],
    expect: ['lock: versions grow'],
  },
  {
    name: 'permits up to what there are, also while that is lowered',
    events: [
      ...[capacity(3), asked('a', 'permits'), asked('b', 'permits'), asked('c', 'permits')],
      ...[permits('a', 1, 2), capacity(1), permits('b', 2, 1), capacity(1, true)],
      ...[left('a'), left('b'), permits('c', 3, 1)],
    ],
    expect: [],
  },
  {
    name: 'one that asked for more permits than there were meanwhile, was refused and asked again',
    events: [
      ...[
        capacity(2),
        asked('h', 'permits'),
        permits('h', 1, 1),
        wants('a', 2),
        queued('a'),
        capacity(1),
        wants('b', 1),
      ],
      ...[left('h'), permits('b', 2, 1), left('b'), capacity(2), capacity(2, true), permits('a', 3, 2)],
    ],
    expect: [],
  },
  {
    name: 'one that asked for as many permits as there always were',
    events: [
      ...[capacity(1), wants('a', 2), capacity(2), capacity(2, true), queued('a'), wants('b', 1), capacity(3)],
      ...[permits('b', 2, 1), permits('a', 3, 2)],
    ],
    expect: ['lock: first come, first served'],
  },
  {
    name: 'more permits than there are',
    events: [capacity(2), permits('a', 1, 2), permits('b', 2, 1)],
    expect: ['lock: permits'],
  },
  {
    name: 'more permits than there are by now',
    events: [
      capacity(3),
      permits('a', 1, 1),
      capacity(1),
      capacity(1, true),
      asked('b', 'permits'),
      permits('b', 2, 1),
    ],
    expect: ['lock: permits'],
  },
  {
    name: 'permits beside a writer',
    events: [capacity(2), granted('w', 1), permits('a', 2, 1)],
    expect: ['lock: one holder'],
  },
  { name: 'two holders', events: [granted('a', 1), granted('b', 2)], expect: ['lock: one holder'] },
  {
    name: 'a writer beside a reader',
    events: [granted('r', 1, 'shared'), granted('w', 2)],
    expect: ['lock: one holder'],
  },
  {
    name: 'a reader that turns into a writer beside another',
    events: [granted('r', 1, 'shared'), granted('s', 1, 'shared'), granted('r', 2)],
    expect: ['lock: one holder'],
  },
  {
    name: 'a version that does not grow',
    events: [granted('a', 5), left('a'), asked('b'), granted('b', 4)],
    expect: ['lock: versions grow'],
  },
  {
    name: 'a version again',
    events: [granted('a', 5), left('a'), granted('b', 5)],
    expect: ['lock: versions grow'],
  },
  {
    name: 'a version of one who asked at the same time again',
    events: [asked('a'), asked('b'), granted('a', 5), left('a'), granted('b', 5)],
    expect: ['lock: versions grow'],
  },
  {
    name: 'a waiter that is passed',
    events: [
      granted('h', 1),
      asked('a'),
      queued('a'),
      asked('b'),
      left('h'),
      granted('b', 2),
      left('b'),
      granted('a', 3),
    ],
    expect: ['lock: first come, first served'],
  },
  {
    name: 'a reader that is passed by one that asked later',
    events: [
      granted('h', 1),
      asked('r', 'shared'),
      queued('r'),
      asked('s', 'shared'),
      left('h'),
      granted('s', 2, 'shared'),
      granted('r', 3, 'shared'),
    ],
    expect: ['lock: first come, first served'],
  },
  {
    name: 'a waiter that is never answered',
    events: [asked('a'), queued('a')],
    expect: ['lock: who asks is answered'],
  },
  {
    name: 'a resource that takes writes of a holder and of the next one, and then of the first again',
    events: [accepted('a', 1), accepted('a', 1), accepted('b', 2), accepted('a', 1)],
    expect: ['lock: fencing'],
  },
];

describe('lock check', () => {
  it.each(rows)('$name: $expect', ({ events, expect: expected }) => {
    expect(runCheck(new LockCheck(), events).map(({ property }) => property)).toEqual(expected);
  });

  it('what a correct lock does passes, and one that forgets a holder, a waiter or a version is found', () => {
    const found = { none: 0, holder: 0, order: 0, version: 0 };
    for (let seed = 1; seed <= 100; seed++) {
      for (const fault of ['none', 'holder', 'order', 'version'] as const) {
        const findings = runCheck(new LockCheck(), useLock(new SeededRandom(seed), fault));
        if (findings.length > 0) found[fault] += 1;
      }
    }
    expect(found).toEqual({ none: 0, holder: 100, order: expect.any(Number), version: 100 });
    expect(found.order).toBeGreaterThan(80); // With few waiters, one order is like another.
  });
});

/** Clients that take turns at a lock with a queue. */
function useLock(random: Random, fault: 'none' | 'holder' | 'order' | 'version'): LockEvent[] {
  const events: LockEvent[] = [];
  const queue: { readonly owner: string; readonly mode: LockMode }[] = [];
  const holders = new Map<string, LockMode>();
  let version = 1;
  const grant = (): void => {
    for (;;) {
      const [first] = queue;
      const writing = fault !== 'holder' && [...holders.values()].includes('exclusive');
      const blocked = first?.mode === 'exclusive' && fault !== 'holder' ? holders.size > 0 : writing;
      if (first === undefined || blocked) return;
      if (fault !== 'version') version += 1;
      queue.shift();
      holders.set(first.owner, first.mode);
      events.push(granted(first.owner, version, first.mode));
    }
  };
  for (let turn = 0; turn < 120; turn++) {
    const [holder] = holders.keys();
    if (random.int(2) === 0 || (queue.length === 0 && holder === undefined)) {
      const waiter = { owner: `o${turn}`, mode: random.int(3) === 0 ? ('shared' as const) : ('exclusive' as const) };
      queue.splice(fault === 'order' ? random.int(queue.length + 1) : queue.length, 0, waiter);
      events.push(asked(waiter.owner, waiter.mode), queued(waiter.owner));
    } else if (holder !== undefined) {
      holders.delete(holder);
      events.push(left(holder));
    }
    grant();
  }
  return [...events, ...queue.map(({ owner }) => gone(owner))];
}
