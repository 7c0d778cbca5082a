/** Lists of locks over HTTP: searches, namespaces, and what sessions hold and wait for. */
import { beforeEach, describe, expect, test } from 'vitest';
import { OF_LISTS, unseenAnswers } from './described.ts';
import { type Grant, GUID, HttpBed, LOCKS, lockPath, type Shown } from './http-bed.ts';

let bed: HttpBed;
beforeEach(() => {
  bed = new HttpBed();
});

interface Page {
  readonly locks: readonly Shown[];
  readonly more: boolean;
  readonly next?: string;
  readonly nowMs: number;
}

const page = (query: string): Promise<Page> => bed.done<Page>({ method: 'GET', target: `${LOCKS}?${query}` });
const names = ({ locks }: Page) => locks.map(({ name }) => name);

/** All pages: the names, and how many pages there were. */
async function pages(query: string): Promise<{ readonly found: unknown[]; readonly asked: number }> {
  const found: unknown[] = [];
  let [asked, after] = [0, ''];
  for (let more = true; more; asked++) {
    const one = await page(`${query}${after}`);
    found.push(...names(one));
    more = one.more;
    after = `&after=${one.next}`;
  }
  return { found, asked };
}

test('names are found by a part, kinds are told apart, and pages go on where the last one ended', async () => {
  const { session } = await bed.done<Grant>({ target: '/v1/sessions', body: {} });
  for (const name of ['db-1', 'db-12', 'web-1', '__proto__', '%E2%80%AEevil', '%FF%31']) await bed.acquire(name);
  await bed.acquire('shared-1', { session, token: `${GUID}-s`, shared: true });
  await bed.acquire('permits-1', { session, token: `${GUID}-p`, permits: 1, capacity: 2 });
  const waiting = bed.ask({ target: lockPath('db-1', 'acquire'), body: { pass: true, wait: '1m' } });
  await bed.world.run(100);
  expect(names(await page('contains=db'))).toEqual(['db-1', 'db-12']);
  expect(names(await page('contains=-1&prefix=web'))).toEqual(['web-1']);
  expect((await pages('contains=1&limit=2')).found).toEqual([
    ...['db-1', 'db-12', 'permits-1', 'shared-1', 'web-1'],
    { base64: '/zE=' },
  ]);
  expect(names(await page('contains=__proto__'))).toEqual(['__proto__']);
  expect(names(await page('contains=%E2%80%AE'))).toEqual(['\u202Eevil']);
  const byKind = await Promise.all(['shared', 'semaphore', 'barrier'].map((kind) => page(`kind=${kind}`)));
  expect(byKind.map(names)).toEqual([['shared-1'], ['permits-1'], ['db-1']]);
  expect(names(await page('kind=exclusive&contains=1'))).toEqual(['db-1', 'db-12', 'web-1', { base64: '/zE=' }]);
  expect(names(await page('waiting=true'))).toEqual(['db-1']);
  expect(names(await page('waiting=true&kind=shared'))).toEqual([]);
  expect(names(await page('waiting=false&limit=2'))).toHaveLength(2);
  const held = await bed.done<Shown & { readonly nowMs: number }>({ method: 'GET', target: `${LOCKS}/db-1` });
  expect(held.nowMs).toBe(bed.world.clock.wallMs());
  await bed.done({ target: lockPath('db-1', 'force-release') });
  await bed.world.until(waiting);
});

test('a search that finds nothing among very many locks does a bounded part of the work in each request', async () => {
  const { backend } = bed.world;
  const asked: string[] = [];
  backend.query = (query, _options, done) => {
    if (query.type !== 'lock' || query.query.type !== 'search') throw new Error('a search');
    asked.push(Buffer.from(query.query.after).toString());
    const result = { type: 'search', locks: [], next: Buffer.from(`l${asked.length}`) } as const;
    done(undefined, { result: { type: 'lock', result }, revision: 1, raftTerm: 1 });
    return () => {};
  };
  const first = await page('contains=x');
  expect([names(first), first.more, first.next]).toEqual([[], true, 'l20']);
  expect(asked).toEqual(['', ...Array.from({ length: 19 }, (_, i) => `l${i + 1}`)]);
  await page(`contains=x&after=${first.next}`);
  expect(asked.slice(20)).toHaveLength(20);
  expect(asked[20]).toBe('l20');
});

test('locks with waiters are found among others, page by page', async () => {
  for (const name of ['a', 'b', 'c', 'd', 'e']) await bed.acquire(name);
  const waiting = ['b', 'c', 'e'].map((name) =>
    bed.ask({ target: lockPath(name, 'acquire'), body: { token: `${GUID}-${name}`, wait: '1m' } }),
  );
  await bed.world.run(100);
  expect(await pages('waiting=true&limit=2')).toEqual({ found: ['b', 'c', 'e'], asked: 2 });
  expect(await pages('waiting=true&limit=3')).toEqual({ found: ['b', 'c', 'e'], asked: 1 });
  for (const name of ['b', 'c', 'e']) await bed.done({ target: lockPath(name, 'force-release') });
  await Promise.all(waiting.map((one) => bed.world.until(one)));
  expect(names(await page('waiting=true'))).toEqual([]);
});

test('namespaces are listed page by page', async () => {
  for (const namespace of ['b', 'a', '__proto__', 'shop%2Fnorth']) {
    await bed.done({ target: `/v1/locks/${namespace}/l/acquire` });
  }
  const list = (query: string) => bed.done<object>({ method: 'GET', target: `/v1/namespaces?${query}` });
  const all = ['a', 'b', '__proto__', 'shop/north'];
  expect(await list('')).toEqual({ namespaces: all, more: false });
  expect(await list('limit=3')).toEqual({ namespaces: all.slice(0, 3), more: true, next: '__proto__' });
  expect(await list('limit=3&after=__proto__')).toEqual({ namespaces: ['shop/north'], more: false });
});

describe('a session', () => {
  test('is shown with what it holds and waits for, and since when', async () => {
    const { session } = await bed.done<Grant>({ target: '/v1/sessions', body: { ttl: '1h' } });
    const heldMs = bed.world.clock.wallMs();
    await bed.acquire('mine', { session, token: `${GUID}-1` });
    await bed.acquire('ours', { session, token: `${GUID}-2`, shared: true });
    await bed.acquire('theirs', { ttl: '1h' });
    await bed.world.run(5_000);
    const waiting = bed.ask({
      target: lockPath('theirs', 'acquire'),
      body: { session, token: `${GUID}-3`, wait: '9m' },
    });
    await bed.world.run(100);
    const target = `/v1/sessions/${session}/locks`;
    const { holds, waits, more, nowMs } = await bed.done<{
      readonly holds: readonly { readonly sinceMs: number }[];
      readonly waits: readonly { readonly sinceMs: number }[];
      readonly more: boolean;
      readonly nowMs: number;
    }>({ method: 'GET', target });
    expect([holds, waits, more]).toMatchObject([
      [
        { namespace: 'default', name: 'mine', mode: 'exclusive', version: expect.any(Number) },
        { name: 'ours', mode: 'shared' },
      ],
      [{ name: 'theirs', mode: 'exclusive', position: 1 }],
      false,
    ]);
    expect(Math.abs((holds[0]?.sinceMs ?? 0) - heldMs)).toBeLessThan(500);
    expect((waits[0]?.sinceMs ?? 0) - (holds[0]?.sinceMs ?? 0)).toBeGreaterThanOrEqual(5_000);
    expect(nowMs).toBe(bed.world.clock.wallMs());
    await bed.done({ target: lockPath('theirs', 'force-release') });
    await bed.world.until(waiting);
    await bed.done({ method: 'DELETE', target: `/v1/sessions/${session}` });
    expect(await bed.refused({ method: 'GET', target })).toBe('410 SESSION_EXPIRED');
  });
});

test.each([
  { target: `${LOCKS}?kind=rw`, said: 'kind must be one of exclusive, shared, semaphore, barrier' },
  { target: `${LOCKS}?waiting=yes`, said: 'waiting must be true or false' },
  { target: `${LOCKS}?contains=${'x'.repeat(1_025)}`, said: 'contains has 0 to 1024 bytes' },
  { target: `${LOCKS}?kind=shared&limit=1001`, said: 'limit is an integer from 1 to 1000' },
  { target: '/v1/namespaces?limit=0', said: 'limit is an integer from 1 to 1000' },
  { target: '/v1/namespaces?after=%FF', said: 'after must be percent-encoded UTF-8' },
  { target: '/v1/namespaces?prefix=a', said: 'this call takes after, limit' },
  { target: '/v1/sessions/1.1/locks?limit=1', said: 'this call takes none' },
])('$target is refused', async ({ target, said }) => {
  const { status, body } = await bed.world.until(bed.ask({ method: 'GET', target }));
  expect([status, (body as { error: { message: string } }).error.message]).toEqual([
    400,
    expect.stringContaining(said),
  ]);
});

test('the document names nothing of this that was not seen here', () => {
  expect(unseenAnswers((answer) => OF_LISTS.test(answer))).toEqual([]);
});
