import { ServiceError } from '@remora/base';
import { type LockQuery, type LockState, lockSpan } from '@remora/lock';
import type { RangeDescriptor, RangeReply } from '@remora/protocol';
import { expect, test } from 'vitest';
import type { Route } from '../routes/route-map.ts';
import { listLocks } from './lock-lists.ts';

type ListQuery = Extract<LockQuery, { readonly type: 'list' }>;

const RANGE = { rangeId: 2 } as RangeDescriptor; // only its place matters here
const NAMES = ['a', 'b', 'c', 'd', 'e'];
const QUERY: ListQuery = {
  ...{ type: 'list', namespace: 'n', prefix: new Uint8Array(0), after: new Uint8Array(0), limit: 10 },
};
const placeOf = (name: string) => Buffer.from(lockSpan({ namespace: 'n', name: Buffer.from(name) }).start);
const lockNamed = (name: string): LockState => ({
  lock: { namespace: 'n', name: Buffer.from(name) },
  ...{
    kind: 'exclusive',
    holders: [],
    holderCount: 0,
    waiters: [],
    waiterCount: 0,
    permits: 0,
    capacity: 0,
    keptData: undefined,
    forced: undefined,
    passing: 0,
  },
});

/** Ranges that begin at these locks, and list what they have. */
async function list(borders: readonly string[], query: Partial<ListQuery>, stale: readonly number[] = []) {
  const asked: string[] = [];
  let asks = 0;
  const { result } = await listLocks(
    { ...QUERY, ...query },
    {
      async routesOf({ start, end }) {
        const places = [
          start,
          ...borders.map(placeOf).filter((place) => place.compare(start) > 0 && place.compare(end) < 0),
          end,
        ];
        return places.slice(0, -1).map((at, i): Route => ({ start: at, end: places[i + 1] ?? end, range: RANGE }));
      },
      async ask(part, span): Promise<RangeReply> {
        if (part.type !== 'lock' || part.query.type !== 'list') throw new Error('locks are listed');
        if (stale.includes(asks++)) throw new ServiceError('STALE_EPOCH', '');
        const after = part.query.after;
        const here = NAMES.filter((name) => {
          const place = placeOf(name);
          const behind = after.length === 0 || place.compare(placeOf(Buffer.from(after).toString())) > 0;
          return behind && place.compare(span.start) >= 0 && place.compare(span.end) < 0;
        });
        const listed = here.slice(0, part.query.limit);
        asked.push(listed.join(''));
        const result = { type: 'list', locks: listed.map(lockNamed), more: listed.length < here.length } as const;
        return { revision: 5, raftTerm: 1, rangeTimeMs: 0, result: { type: 'lock', result } };
      },
      pause: async () => {},
    },
  );
  if (result.type !== 'list') throw new Error('locks are listed');
  const { locks, more } = result;
  return { names: locks.map(({ lock }) => Buffer.from(lock.name).toString()).join(''), more, asked };
}

test('locks of several ranges are listed in order, each once', async () => {
  expect(await list(['b', 'd'], {})).toEqual({ names: 'abcde', more: false, asked: ['a', 'bc', 'de'] });
});

test('a limit ends the list, and says that there may be more', async () => {
  expect(await list(['b', 'd'], { limit: 3 })).toMatchObject({ names: 'abc', more: true });
  expect(await list(['b', 'd'], { limit: 2 })).toMatchObject({ names: 'ab', more: true });
});

test('a list goes on behind a lock, in whichever range that is', async () => {
  expect(await list(['b', 'd'], { after: Buffer.from('c') })).toEqual({ names: 'de', more: false, asked: ['', 'de'] });
  expect(await list(['b', 'd'], { after: Buffer.from('e') })).toMatchObject({ names: '', more: false });
});

test('names that begin so are listed, and the place at which they begin is in the range before', async () => {
  expect(await list(['b', 'd'], { prefix: Buffer.from('d') })).toEqual({ names: 'd', more: false, asked: ['', 'd'] });
});

test('a range that is not what it was is looked for again', async () => {
  expect(await list(['c'], {}, [0, 2])).toEqual({ names: 'abcde', more: false, asked: ['ab', 'cde'] });
});

test('a range that others were merged into meanwhile is asked in their place, and lists each lock once', async () => {
  const asked: string[] = [];
  const { result } = await listLocks(QUERY, {
    routesOf: async ({ start, end }) => {
      const middle = placeOf('c');
      if (middle.compare(start) <= 0) return [{ start, end, range: RANGE }];
      return [
        { start, end: middle, range: RANGE },
        { start: middle, end, range: RANGE },
      ];
    },
    ask: async (part) => {
      if (part.type !== 'lock' || part.query.type !== 'list') throw new Error('locks are listed');
      const after = Buffer.from(part.query.after).toString();
      asked.push(after);
      const result = { type: 'list', locks: NAMES.filter((name) => name > after).map(lockNamed), more: false } as const;
      return { revision: 5, raftTerm: 1, rangeTimeMs: 0, result: { type: 'lock', result } };
    },
    pause: async () => {},
  });
  if (result.type !== 'list') throw new Error('locks are listed');
  expect(result.locks.map(({ lock }) => Buffer.from(lock.name).toString())).toEqual(NAMES);
  expect([result.more, asked]).toEqual([false, ['', 'e']]);
});

test('any other error ends it', async () => {
  const failing = listLocks(QUERY, {
    routesOf: async (span) => [{ ...span, range: RANGE }],
    ask: async () => Promise.reject(new ServiceError('UNAVAILABLE', 'gone')),
    pause: async () => {},
  });
  await expect(failing).rejects.toThrow('gone');
});

test('a search asks range after range from where the last one stopped looking', async () => {
  const asked: string[] = [];
  const search = {
    ...({ type: 'search', namespace: 'n', prefix: new Uint8Array(0), limit: 10 } as const),
    contains: Buffer.from('x'),
  };
  const find = async (after: Uint8Array) => {
    const { result } = await listLocks(
      { ...search, after },
      {
        routesOf: async ({ start, end }) => {
          const middle = placeOf('c');
          const first = { start, end: middle, range: RANGE };
          return middle.compare(start) <= 0
            ? [{ start, end, range: RANGE }]
            : [first, { ...first, start: middle, end }];
        },
        ask: async (part) => {
          if (part.type !== 'lock' || part.query.type !== 'search') throw new Error('locks are searched');
          const { after: from, limit, contains } = part.query;
          asked.push(`${Buffer.from(from)} ${limit} ${Buffer.from(contains)}`);
          // The first range has nothing that fits; the second one looks at a part of its locks.
          const isFirst = asked.length === 1;
          const locks = isFirst ? [] : [lockNamed('cx')];
          const next = isFirst ? undefined : Buffer.from('d');
          return {
            revision: 5,
            raftTerm: 1,
            rangeTimeMs: 0,
            result: { type: 'lock', result: { type: 'search', locks, next } },
          };
        },
        pause: async () => {},
      },
    );
    if (result.type !== 'search') throw new Error('locks are searched');
    return { names: result.locks.map(({ lock }) => Buffer.from(lock.name).toString()), next: result.next };
  };
  expect(await find(Buffer.from('a'))).toEqual({ names: ['cx'], next: Buffer.from('d') });
  expect(asked).toEqual(['a 10 x', 'a 10 x']);
});

test('namespaces of several ranges are listed each once, although one is in two of them', async () => {
  const BY_RANGE = [
    ['a', 'b'],
    ['b', 'cc'],
  ];
  const asked: string[] = [];
  const border = Buffer.from(lockSpan({ namespace: 'b', name: Buffer.from('k') }).start);
  const list = async (limit: number, after = '') => {
    asked.length = 0;
    const { result } = await listLocks(
      { type: 'namespaces', after, limit },
      {
        routesOf: async ({ start, end }) =>
          [
            { start, end: border, range: RANGE },
            { start: border.compare(start) > 0 ? border : start, end, range: RANGE },
          ].filter((part) => Buffer.compare(part.start, part.end) < 0),
        ask: async (part, span) => {
          if (part.type !== 'lock' || part.query.type !== 'namespaces') throw new Error('namespaces are listed');
          const { after: from, limit: room } = part.query;
          asked.push(`${from} ${room}`);
          const here = (BY_RANGE[border.compare(span.start) > 0 ? 0 : 1] ?? []).filter((name) => name > from);
          const namespaces = here.slice(0, room);
          const listed = { type: 'namespaces', namespaces, more: here.length > namespaces.length } as const;
          return { revision: 5, raftTerm: 1, rangeTimeMs: 0, result: { type: 'lock', result: listed } };
        },
        pause: async () => {},
      },
    );
    return result;
  };
  expect(await list(10)).toEqual({ type: 'namespaces', namespaces: ['a', 'b', 'cc'], more: false });
  expect(asked).toEqual([' 10', 'b 8']);
  expect(await list(2)).toEqual({ type: 'namespaces', namespaces: ['a', 'b'], more: true });
  expect(await list(10, 'b')).toEqual({ type: 'namespaces', namespaces: ['cc'], more: false });
});
