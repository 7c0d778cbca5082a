import type { KvPair, Listing, LockState, RemoraClient, SessionInfo } from 'remora';
import { beforeAll, describe, expect, test } from 'vitest';
import { codeOf, World } from '../support/sdk-world.ts';

const NAMES = ['n/1', 'n/2', 'n/3', 'n/4', 'n/5'];
let world: World;
let client: RemoraClient;
beforeAll(async () => {
  world = new World();
  client = await world.client();
  for (const name of NAMES) {
    await world.until(client.kv.put(name, 'v'));
    await world.until(client.lock(name).acquire({ ttl: '1h' }));
  }
});

type Item = KvPair | LockState | SessionInfo;

interface Row {
  readonly of: string;
  readonly list: (pageSize: number) => Listing<Item>;
}

/** What names an item. */
function names(items: readonly Item[]): readonly string[] {
  return items.map((item) => ('id' in item ? String(item.id) : String('lock' in item ? item.lock.name : item.key)));
}
const rows: readonly Row[] = [
  { of: 'keys', list: (pageSize) => client.kv.list({ prefix: 'n/' }, { pageSize }) },
  { of: 'locks', list: (pageSize) => client.locks.list({ prefix: 'n/', pageSize }) },
  { of: 'sessions', list: (pageSize) => client.sessions.list({ pageSize }) },
];

describe.each(rows)('a list of $of', ({ list }) => {
  test('has all items, whatever the size of its pages', async () => {
    const whole = await world.until(list(100).toArray());
    expect(whole).toHaveLength(5);
    for (const size of [1, 2, 5]) expect(names(await world.until(list(size).toArray()))).toEqual(names(whole));
  });

  test('comes in pages, of which each but the last has a cursor', async () => {
    const sizes: number[] = [];
    let last: string | undefined = 'none';
    const read = async (): Promise<void> => {
      for await (const { items, cursor } of list(2).pages()) {
        sizes.push(items.length);
        last = cursor;
      }
    };
    await world.until(read());
    expect([sizes.filter((size) => size > 0), last]).toEqual([[2, 2, 1], undefined]);
  });

  test('goes on from a cursor that went through JSON', async () => {
    const whole = await world.until(list(100).toArray());
    const first = await world.until(list(2).page());
    const cursor = JSON.parse(JSON.stringify(first)).cursor as string;
    const rest = await world.until(list(100).page(cursor));
    expect(names([...first.items, ...rest.items])).toEqual(names(whole));
  });

  test('requests no page that nobody asks for', async () => {
    const read = async (): Promise<number> => {
      for await (const _ of list(2)) return 1;
      return 0;
    };
    expect(await world.until(read())).toBe(1);
  });

  test.each([5, '', '!', 'a b', null])('refuses %s as a cursor', async (cursor) => {
    expect(await world.until(codeOf(list(2).page(cursor as never)))).toBe('INVALID_ARGUMENT');
  });
});

test('all pages of keys show one revision, also those of a later call', async () => {
  const list = client.kv.list({ prefix: 'n/' }, { pageSize: 2 });
  const first = await world.until(list.page());
  await world.until(client.kv.put('n/45', 'later'));
  const rest = await world.until(list.page(first.cursor));
  expect(rest.revision).toBe(first.revision);
  expect((await world.until(list.toArray())).length).toBe(6);
  await world.until(client.kv.delete('n/45'));
});

test('a cursor of other keys is refused', async () => {
  const { cursor } = await world.until(client.kv.list({ prefix: 'n/' }, { pageSize: 1 }).page());
  expect(await world.until(codeOf(client.kv.list({ prefix: 'm/' }).page(cursor)))).toBe('INVALID_ARGUMENT');
});

test('leases are on one page', async () => {
  await world.until(client.lease.grant('1h', { id: 5n }));
  const { cursor } = await world.until(client.lease.list().page());
  expect(cursor).toBeUndefined();
});
