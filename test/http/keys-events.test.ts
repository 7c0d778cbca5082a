/** Changes of keys as server-sent events. */
import { beforeEach, describe, expect, test } from 'vitest';
import { unseenAnswers } from './described.ts';
import { KeysBed } from './keys-bed.ts';

let bed: KeysBed;
beforeEach(() => {
  bed = new KeysBed();
});

interface Heard {
  readonly type: string;
  readonly data: unknown;
  readonly id?: number;
}

/** The changes that a stream has told: `put a=1@7`, `delete a@8`. */
function changes(events: readonly Heard[]): string[] {
  return events.flatMap(({ type, data, id }) => {
    if (type !== 'events') return [];
    const told = data as {
      readonly revision: number;
      readonly events: readonly { readonly type: string; readonly key: string; readonly value?: string }[];
    };
    expect(id).toBe(told.revision);
    return told.events.map((one) =>
      one.type === 'put' ? `put ${one.key}=${one.value}@${told.revision}` : `delete ${one.key}@${told.revision}`,
    );
  });
}

test('a prefix is watched: first the revision from which on, then each change, put or deletion, with its revision', async () => {
  await bed.put('a/1', 'before');
  const watched = await bed.listen('/v1/kv-events?prefix=a/');
  expect(watched.events).toEqual([{ type: 'live', data: { revision: 2 }, id: 2 }]);
  await bed.put('a/1', 'x');
  await bed.put('b', 'elsewhere');
  await bed.delete('/v1/kv/a%2F1');
  await bed.world.run(50);
  expect(changes(watched.events)).toEqual(['put a/1=x@3', 'delete a/1@5']);
  watched.close();
  await bed.put('a/1', 'y');
  await bed.world.run(50);
  expect(changes(watched.events)).toHaveLength(2);
});

test('all changes of one revision are one event', async () => {
  for (const key of ['a', 'b', 'c']) await bed.put(key, 'v');
  const watched = await bed.listen('/v1/kv-events');
  await bed.delete('/v1/kv?prefix=&unchangedSince=4');
  await bed.put('d', 'v');
  await bed.world.run(50);
  expect(changes(watched.events)).toEqual(['delete a@5', 'delete b@5', 'delete c@5', 'put d=v@6']);
  expect(watched.events.filter(({ type }) => type === 'events')).toHaveLength(2);
});

describe('a client that reconnects', () => {
  test('gets what it has missed and nothing twice, by the id of the last event or by `since`', async () => {
    const revision = await bed.put('k', '1');
    const first = await bed.listen(`/v1/kv-events?key=k&since=${revision}`);
    await bed.put('k', '2');
    await bed.world.run(50);
    expect(changes(first.events)).toEqual(['put k=2@3']);
    first.close();
    await bed.put('k', '3');
    await bed.put('kk', 'another key');
    await bed.delete('/v1/kv/k');
    const lastId = String(first.events.at(-1)?.id);
    // It sends its first request again, in which `since` is older.
    const again = await bed.listen(`/v1/kv-events?key=k&since=${revision}`, lastId);
    expect(changes(again.events)).toEqual(['put k=3@4', 'delete k@6']);
    expect(again.events[0]).toMatchObject({ type: 'live', id: 3 });
  });

  test('after a compaction is refused with the oldest revision that can be read, as an EventSource must not retry', async () => {
    await bed.put('k', '1');
    await bed.put('k', '2');
    const newest = await bed.put('k', '3');
    await bed.command({ type: 'compact', revision: newest });
    const late = { method: 'GET', target: '/v1/kv-events?key=k', lastEventId: '2' };
    const { status, body } = await bed.world.until(bed.ask(late));
    expect([status, body]).toMatchObject([410, { error: { code: 'COMPACTED', compactRevision: newest } }]);
  });

  test('with an id that is none is told so', async () => {
    const { status, body } = await bed.world.until(
      bed.ask({ method: 'GET', target: '/v1/kv-events', lastEventId: 'x' }),
    );
    expect(status).toBe(400);
    expect((body as { error: { message: string } }).error.message).toContain('Last-Event-ID must be');
  });
});

test('a client that does not read holds the watch up, and gets every change once it does', async () => {
  const slow = await bed.listen('/v1/kv-events?key=k');
  slow.full = true;
  for (let i = 0; i < 5; i++) {
    await bed.put('k', `${i}`);
    await bed.world.run(20);
  }
  expect(changes(slow.events).length).toBe(1);
  slow.full = false;
  slow.drain();
  await bed.world.run(50);
  expect(changes(slow.events)).toEqual([2, 3, 4, 5, 6].map((at, i) => `put k=${i}@${at}`));
});

test('values are left out if they are not wanted, and what was said to be JavaScript is text', async () => {
  const watched = await bed.listen('/v1/kv-events?values=false');
  await bed.put('__proto__', 'v'.repeat(1024 * 1024));
  await bed.world.run(50);
  const { data } = watched.events.at(-1) ?? {};
  expect(data).toMatchObject({ events: [{ type: 'put', key: '__proto__', version: 1 }] });
  expect(JSON.stringify(data).length).toBeLessThan(200);
});

test('a caller that hangs up before the watch has begun leaves none behind', async () => {
  const watching = () => bed.world.backend.keys.watching;
  const caller = new AbortController();
  const asked = bed.ask({ method: 'GET', target: '/v1/kv-events', signal: caller.signal });
  caller.abort(new Error('gone'));
  expect((await bed.world.until(asked)).status).toBe(500);
  expect(watching()).toBe(0);
  const answer = await bed.world.until(bed.ask({ method: 'GET', target: '/v1/kv-events' }));
  await bed.world.run(20);
  expect(watching()).toBe(1);
  answer.undelivered?.();
  expect(watching()).toBe(0);
});

test.each([
  { target: '/v1/kv-events?key=a&prefix=b', said: 'send one of them' },
  { target: '/v1/kv-events?key=', said: 'no key' },
  { target: '/v1/kv-events?since=now', said: 'since must be a whole number' },
  { target: '/v1/kv-events?revision=1', said: 'this call takes key, prefix, since, values' },
])('$target is refused', async ({ target, said }) => {
  const { status, body } = await bed.world.until(bed.ask({ method: 'GET', target }));
  expect([status, (body as { error: { message: string } }).error.message]).toEqual([
    400,
    expect.stringContaining(said),
  ]);
});

test('the document names nothing of this that was not seen here', () => {
  expect(unseenAnswers((answer) => /kv-events/.test(answer))).toEqual([]);
});
