/** Keys over HTTP: reads and writes of one key, lists, and histories. */
import { beforeEach, describe, expect, test } from 'vitest';
import { unseenAnswers } from './described.ts';
import { GUID, lockPath } from './http-bed.ts';
import { encoded, KeysBed } from './keys-bed.ts';

let bed: KeysBed;
beforeEach(() => {
  bed = new KeysBed();
});

const put = (key: string, body: object) => ({ method: 'PUT', target: `/v1/kv/${encoded(key)}`, body });
const get = (target: string) => ({ method: 'GET', target });
const remove = (target: string) => ({ method: 'DELETE', target });

describe('a key', () => {
  test('is written, read at any revision, and deleted', async () => {
    const first = await bed.put('orders/42', 'new');
    const second = await bed.put('orders/42', 'paid');
    const read = { key: 'orders/42', createRevision: first };
    expect(await bed.get('/v1/kv/orders%2F42')).toEqual({
      ...read,
      ...{ value: 'paid', valueBytes: 4, modRevision: second, version: 2, revision: second },
    });
    expect(await bed.get(`/v1/kv/orders%2F42?revision=${first}`)).toEqual({
      ...read,
      ...{ value: 'new', valueBytes: 3, modRevision: first, version: 1, revision: first },
    });
    const { deleted, revision } = await bed.delete('/v1/kv/orders%2F42');
    expect([deleted, revision]).toEqual([1, second + 1]);
    expect(await bed.refused(get('/v1/kv/orders%2F42'))).toBe('404 KEY_NOT_FOUND');
    expect((await bed.delete('/v1/kv/orders%2F42')).deleted).toBe(0);
    expect(await bed.refused(get(`/v1/kv/orders%2F42?revision=${first - 1}`))).toBe('404 KEY_NOT_FOUND');
    expect(await bed.refused(get(`/v1/kv/orders%2F42?revision=${second + 99}`))).toBe('400 FUTURE_REVISION');
  });

  test('that is absent is answered with the revision from which it can be watched', async () => {
    const revision = await bed.put('other', '');
    const { status, body } = await bed.world.until(bed.ask(get('/v1/kv/absent')));
    expect([status, body]).toMatchObject([404, { error: { code: 'KEY_NOT_FOUND', revision } }]);
  });

  test.each([
    { name: 'bytes that are not UTF-8', key: Buffer.of(0xff, 0, 0xfe), value: { base64: '/wD+' } },
    { name: 'names of JavaScript', key: '__proto__', value: '{"__proto__":{"polluted":1}}' },
    { name: 'text that runs backwards', key: '\u202Eevil\u2066', value: '\u202E<script>alert(1)</script>' },
    { name: 'escapes of a terminal', key: '\u001b[2J', value: '\u001b]0;x\u0007' },
    { name: 'a byte order mark', key: '\uFEFFk', value: '\uFEFFv' },
    { name: 'a mebibyte', key: 'large', value: 'é'.repeat(512 * 1024) },
    { name: 'nothing', key: 'empty', value: '' },
    { name: 'zeros', key: '\0\0', value: '\0' },
  ])('keeps $name as they are', async ({ key, value }) => {
    const shown = typeof key === 'string' ? key : { base64: key.toString('base64') };
    await bed.put(key, value);
    expect(await bed.get(`/v1/kv/${encoded(key)}`)).toMatchObject({ key: shown, value });
    expect(await bed.get('/v1/kv')).toMatchObject({ kvs: [{ key: shown, value }] });
    expect(await bed.get('/v1/kv-tree?separator=%FE%FF')).toMatchObject({ entries: [{ kind: 'key', name: shown }] });
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
  });

  test('is as large as a request may be, and not larger', async () => {
    const value = 'v'.repeat(1.5 * 1024 * 1024);
    expect(await bed.refused(put('k', { value }))).toBe('413 REQUEST_TOO_LARGE');
    expect(await bed.put('k', value.slice(1))).toBeGreaterThan(0);
  });

  test('belongs to a lease, as the id of a session names it, until the lease ends', async () => {
    const id = '1234';
    await bed.command({ type: 'leaseGrant', id: 0x1234n, ttlMs: 2_000, attributes: {} });
    await bed.put('k', 'v', { lease: id });
    expect(await bed.get('/v1/kv/k')).toMatchObject({ lease: id });
    expect(await bed.get('/v1/kv-tree')).toMatchObject({ entries: [{ kind: 'key', lease: id }] });
    await bed.world.run(2_100);
    expect(await bed.refused(get('/v1/kv/k'))).toBe('404 KEY_NOT_FOUND');
    expect(await bed.refused(put('k', { value: 'v', lease: id }))).toBe('410 LEASE_NOT_FOUND');
  });
});

describe('a condition', () => {
  test('on the revision of the last change lets one of two writers through, and shows the other what is there', async () => {
    const revision = await bed.put('k', 'a');
    expect(await bed.put('k', 'b', { ifModRevision: revision })).toBe(revision + 1);
    const { status, body } = await bed.world.until(bed.ask(put('k', { value: 'c', ifModRevision: revision })));
    expect([status, body]).toMatchObject([
      409,
      { error: { code: 'KEY_CHANGED', retry: 'no', current: { value: 'b', modRevision: revision + 1, version: 2 } } },
    ]);
    expect(await bed.get('/v1/kv/k')).toMatchObject({ value: 'b' });
  });

  test('0 creates a key once', async () => {
    await bed.put('k', 'a', { ifModRevision: 0 });
    expect(await bed.refused(put('k', { value: 'b', ifModRevision: 0 }))).toBe('409 KEY_CHANGED');
    expect(await bed.refused(put('k', { value: 'b', ifVersion: 0 }))).toBe('409 KEY_CHANGED');
    expect(await bed.refused(put('new', { value: 'b', ifVersion: 1 }))).toBe('409 KEY_CHANGED');
    await bed.put('k', 'b', { ifVersion: 1 });
    expect(await bed.get('/v1/kv/k')).toMatchObject({ value: 'b', version: 2 });
  });

  test('on a lock that the grant does not hold lets nobody write or delete', async () => {
    await bed.put('k', 'a');
    const fence = { name: 'l', version: 7 };
    const { status, body } = await bed.world.until(bed.ask(put('k', { value: 'late', fence })));
    expect([status, body]).toMatchObject([409, { error: { code: 'FENCED', retry: 'no' } }]);
    expect(await bed.refused(put('k', { value: 'late', ifVersion: 9, fence }))).toBe('409 FENCED');
    expect(await bed.refused(remove('/v1/kv/k?fenceName=l&fenceVersion=7&fenceNamespace=n'))).toBe('409 FENCED');
    expect(await bed.get('/v1/kv/k')).toMatchObject({ value: 'a', version: 1 });
  });

  test('that fails says that the key is absent, and leaves a large value out', async () => {
    const { body } = await bed.world.until(bed.ask(put('k', { value: 'v', ifModRevision: 7 })));
    expect(body).toMatchObject({ error: { code: 'KEY_CHANGED', current: null } });
    await bed.put('k', 'v'.repeat(70_000));
    const large = await bed.world.until(bed.ask(put('k', { value: 'v', ifModRevision: 7 })));
    const { current } = (large.body as { error: { current: object } }).error;
    expect(current).toMatchObject({ valueBytes: 70_000 });
    expect(current).not.toHaveProperty('value');
  });

  test('holds for a delete, too', async () => {
    const revision = await bed.put('k', 'a');
    expect(await bed.refused(remove(`/v1/kv/k?ifModRevision=${revision - 1}`))).toBe('409 KEY_CHANGED');
    expect(await bed.refused(remove('/v1/kv/k?ifVersion=2'))).toBe('409 KEY_CHANGED');
    expect((await bed.delete(`/v1/kv/k?ifModRevision=${revision}&ifVersion=1`)).deleted).toBe(1);
  });
});

describe('a call whose answer is lost', () => {
  test('is carried out once, by whichever node, if it has a requestId', async () => {
    const call = put('k', { value: 'a', ifModRevision: 0, requestId: GUID });
    const first = await bed.done<{ modRevision: number }>(call);
    expect(await bed.done(call, 1)).toEqual(first);
    expect(await bed.get('/v1/kv/k')).toMatchObject({ version: 1 });
    // Another request with the same id is another change.
    await bed.done(put('k', { value: 'b', requestId: GUID }));
    expect(await bed.get('/v1/kv/k')).toMatchObject({ version: 2, value: 'b' });
    const gone = `/v1/kv/k?requestId=${GUID}`;
    expect((await bed.delete(gone)).deleted).toBe(1);
    await bed.put('k', 'again');
    expect((await bed.delete(gone)).deleted).toBe(1);
    expect(await bed.get('/v1/kv/k')).toMatchObject({ value: 'again' });
  });

  test('and has none is carried out again', async () => {
    const call = put('k', { value: 'a', ifModRevision: 0 });
    await bed.done(call);
    expect(await bed.refused(call)).toBe('409 KEY_CHANGED');
  });
});

describe('all keys with a prefix', () => {
  test('are deleted in one step if nobody has changed one since they were looked at', async () => {
    for (const key of ['a/1', 'a/2', 'b']) await bed.put(key, 'v');
    const { revision } = await bed.get<{ revision: number }>('/v1/kv?prefix=a/');
    await bed.put('a/3', 'v');
    const since = (at: number) => `/v1/kv?prefix=a/&unchangedSince=${at}&requestId=${GUID}`;
    expect(await bed.refused(remove(since(revision)))).toBe('409 KEY_CHANGED');
    await bed.put('b', 'changed, and elsewhere');
    expect(await bed.delete(since(revision + 1))).toMatchObject({ deleted: 3 });
    await bed.put('a/4', 'later');
    expect(await bed.delete(since(revision + 1))).toMatchObject({ deleted: 3 });
    expect(await bed.get('/v1/kv?values=false')).toMatchObject({ kvs: [{ key: 'a/4' }, { key: 'b' }] });
    const { revision: last } = await bed.get<{ revision: number }>('/v1/kv');
    expect(await bed.delete(`/v1/kv?prefix=&unchangedSince=${last}`)).toMatchObject({ deleted: 2 });
  });
});

describe('a list', () => {
  test('has the keys of a prefix in order, with or without values, page by page at one revision', async () => {
    for (const key of ['a', 'b/1', 'b/2', 'b/3', 'c']) await bed.put(key, `value of ${key}`);
    const first = await bed.get<{ kvs: unknown[]; next: string }>('/v1/kv?prefix=b/&limit=2');
    expect(first.kvs).toMatchObject([
      { key: 'b/1', value: 'value of b/1' },
      { key: 'b/2', value: 'value of b/2' },
    ]);
    await bed.put('b/2x', 'too late for this list');
    await bed.put('b/3', 'and so is this');
    const second = await bed.get<{ kvs: unknown[]; next?: string }>(`/v1/kv?prefix=b/&after=${first.next}`);
    expect(second.kvs).toMatchObject([{ key: 'b/3', value: 'value of b/3' }]);
    expect(second.next).toBeUndefined();
    const { entries } = await bed.pages('/v1/kv?limit=1&values=false', 'kvs');
    expect(entries.map((entry) => (entry as { key: string }).key)).toEqual(['a', 'b/1', 'b/2', 'b/2x', 'b/3', 'c']);
    for (const entry of entries) expect(entry).not.toHaveProperty('value');
  });

  test('of large values ends a page early', async () => {
    for (const key of ['a', 'b', 'c', 'd', 'e', 'f']) await bed.put(key, 'v'.repeat(1024 * 1024));
    const { entries, pages } = await bed.pages('/v1/kv?limit=100', 'kvs');
    expect([entries.length, pages]).toEqual([6, 2]);
  });

  test('ends with a clear error if its revision is compacted between two pages', async () => {
    for (const key of ['a', 'b', 'c']) await bed.put(key, 'v');
    const { next } = await bed.get<{ next: string }>('/v1/kv?limit=1');
    const tree = await bed.get<{ next: string }>('/v1/kv-tree?limit=1');
    await bed.put('a', 'w');
    const now = await bed.put('a', 'x');
    await bed.command({ type: 'compact', revision: now });
    for (const target of [`/v1/kv?limit=1&after=${next}`, `/v1/kv-tree?limit=1&after=${tree.next}`]) {
      const { status, body } = await bed.world.until(bed.ask(get(target)));
      expect([status, body]).toMatchObject([410, { error: { code: 'COMPACTED' } }]);
      expect((body as { error: { message: string } }).error.message).toContain('begin again');
    }
    expect(await bed.refused(get(`/v1/kv/a?revision=${now - 1}`))).toBe('410 COMPACTED');
  });

  test('finds keys by a part of their names, over many keys in bounded steps', async () => {
    for (let i = 0; i < 30; i++) await bed.put(`k${i}`, 'v');
    await bed.put(Buffer.of(0xff, 0x31), 'v');
    const { entries } = await bed.pages('/v1/kv?contains=1&limit=3', 'kvs');
    const names = entries.map((entry) => (entry as { key: unknown }).key);
    const fitting = [1, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 21].map((i) => `k${i}`);
    expect(names).toEqual([...fitting.sort(), { base64: '/zE=' }]);
    expect(entries[0]).not.toHaveProperty('value');
  });
});

describe('the history of a key', () => {
  test('shows what it was before it was deleted, page by page, back to the last compaction', async () => {
    const [a, b] = [await bed.put('k', 'a'), await bed.put('k', 'b')];
    const { revision: gone } = await bed.delete('/v1/kv/k');
    const c = await bed.put('k', 'c');
    const all = await bed.get<{ versions: unknown[] }>('/v1/kv-history/k');
    expect(all).toMatchObject({ compactRevision: 0, revision: c });
    expect(all.versions).toMatchObject([
      { type: 'put', value: 'c', modRevision: c, createRevision: c, version: 1 },
      { type: 'delete', key: 'k', modRevision: gone },
      { type: 'put', value: 'b', modRevision: b, createRevision: a, version: 2 },
      { type: 'put', value: 'a', modRevision: a, version: 1 },
    ]);
    expect((await bed.pages('/v1/kv-history/k?limit=1', 'versions')).entries).toEqual(all.versions);
    await bed.command({ type: 'compact', revision: b });
    const kept = await bed.get<{ versions: unknown[]; next?: string }>('/v1/kv-history/k');
    expect(kept.versions).toEqual(all.versions.slice(0, 3));
    expect(kept).toMatchObject({ compactRevision: b });
    expect(kept.next).toBeUndefined();
    expect(await bed.get('/v1/kv-history/never')).toMatchObject({ versions: [] });
  });
});

test('records of locks are not among the keys, and no key reaches them', async () => {
  await bed.acquire('l');
  expect(await bed.get('/v1/kv')).toMatchObject({ kvs: [] });
  expect(await bed.get('/v1/kv-tree')).toMatchObject({ entries: [] });
  const record = Buffer.concat([Buffer.of(2, 7), Buffer.from('defaultl'), Buffer.of(0, 1, 0)]);
  await bed.put(record, 'not a lock');
  expect(await bed.refused({ target: lockPath('l', 'acquire') })).toBe('423 LOCK_BUSY');
  const { revision } = await bed.get<{ revision: number }>('/v1/kv');
  await bed.delete(`/v1/kv?prefix=&unchangedSince=${revision}`);
  expect(await bed.users('l')).toBe('1/0');
});

describe('a wrong request says what is expected', () => {
  test.each([
    { name: 'no key', ask: put('', { value: 'v' }), said: 'the path has no key', code: 'EMPTY_KEY' },
    { name: 'no key to read', ask: get('/v1/kv/'), said: 'the path has no key', code: 'EMPTY_KEY' },
    { name: 'no key of a history', ask: get('/v1/kv-history/'), said: 'no key', code: 'EMPTY_KEY' },
    { name: 'no value', ask: put('k', {}), said: 'value is missing' },
    { name: 'a value that is a number', ask: put('k', { value: 1 }), said: 'value: expected text, or {"base64"' },
    {
      name: 'a misspelt condition',
      ask: put('k', { value: '', ifModrevision: 1 }),
      said: 'did you mean ifModRevision',
    },
    { name: 'a fence without a version', ask: put('k', { value: '', fence: { name: 'l' } }), said: 'fence.version is' },
    { name: 'a fence without a name', ask: remove('/v1/kv/k?fenceVersion=1'), said: 'fenceName is missing' },
    { name: 'a fence of a word', ask: put('k', { value: '', fence: 'l' }), said: 'fence: expected an object' },
    { name: 'a negative revision', ask: put('k', { value: '', ifModRevision: -1 }), said: 'ifModRevision: expected' },
    { name: 'a lease that is none', ask: put('k', { value: '', lease: 'x' }), said: 'a lease in hexadecimal' },
    { name: 'a query of a put', ask: { ...put('k', { value: '' }), target: '/v1/kv/k?lease=1' }, said: 'takes none' },
    { name: 'an unknown parameter', ask: get('/v1/kv?values=false&x=1'), said: 'this call takes prefix' },
    { name: 'values that are neither', ask: get('/v1/kv?values=yes'), said: 'values must be true or false' },
    { name: 'a search for values', ask: get('/v1/kv?contains=a&values=true'), said: 'without their values' },
    { name: 'no entries', ask: get('/v1/kv?limit=0'), said: 'limit must be a whole number from 1 to 1000' },
    { name: 'too many entries', ask: get('/v1/kv-tree?limit=1001'), said: 'limit must be' },
    { name: 'too many versions', ask: get('/v1/kv-history/k?limit=1001'), said: 'limit must be' },
    { name: 'a cursor that is none', ask: get('/v1/kv?after=b'), said: 'expected `next` of the previous page' },
    { name: 'a cursor of another list', ask: get('/v1/kv?prefix=a&after=5.b'), said: 'of the same list' },
    { name: 'a cursor in front', ask: get('/v1/kv-tree?prefix=b&after=5.a'), said: 'of the same list' },
    { name: 'two revisions', ask: get('/v1/kv?after=5.b&revision=4'), said: 'the revision of the first one' },
    { name: 'an empty separator', ask: get('/v1/kv-tree?separator='), said: 'at least one character' },
    { name: 'a delete of all', ask: remove('/v1/kv'), said: 'prefix is missing' },
    { name: 'a careless delete', ask: remove('/v1/kv?prefix=a'), said: 'unchangedSince is missing' },
    { name: 'an empty id', ask: remove('/v1/kv/k?requestId='), said: 'requestId: expected text of 1 to' },
    { name: 'a revision of a word', ask: get('/v1/kv/k?revision=now'), said: 'revision must be a whole number' },
  ])('$name', async ({ ask, said, code = 'INVALID_ARGUMENT' }) => {
    const { status, body } = await bed.world.until(bed.ask(ask));
    const { error } = body as { readonly error: { readonly code: string; readonly message: string } };
    expect([status, error.code]).toEqual([400, code]);
    expect(error.message).toContain(said);
  });
});

test('the document names nothing of this that was not seen here', () => {
  expect(unseenAnswers((answer) => / \/v1\/kv(\/|-tree|-history| )/.test(answer))).toEqual([]);
});
