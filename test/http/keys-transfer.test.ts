/** Exports and imports of keys as JSON lines. */
import { ServiceError } from '@remora/base';
import { beforeEach, describe, expect, test } from 'vitest';
import { unseenAnswers } from './described.ts';
import { KeysBed } from './keys-bed.ts';

let bed: KeysBed;
beforeEach(() => {
  bed = new KeysBed();
});

const imported = (lines: readonly unknown[], mode = 'ifAbsent') => ({ target: `/v1/kv-import?mode=${mode}`, lines });

test('what is exported is imported again, at once or into what is there', async () => {
  const hostile = Buffer.of(0xff, 0xfe);
  for (const key of ['a/1', 'a/__proto__', 'a/\u202E']) await bed.put(key, `value of ${key}`);
  await bed.put(Buffer.concat([Buffer.from('a/'), hostile]), { base64: hostile.toString('base64') });
  const revision = await bed.put('a/large', 'v'.repeat(1024 * 1024));
  await bed.put('b', 'another prefix');
  await bed.put('a/1', 'later');
  const lines = await bed.lines(`/v1/kv-export?prefix=a/&revision=${revision}`);
  expect(lines).toHaveLength(6);
  expect(lines[0]).toMatchObject({ key: 'a/1', value: 'value of a/1', version: 1 });
  expect(lines.at(-1)).toEqual({ end: { keys: 5, revision } });

  expect(await bed.done(imported(lines))).toEqual({ written: 0, skipped: 5 });
  expect(await bed.get('/v1/kv/a%2F1')).toMatchObject({ value: 'later' });
  expect(await bed.done(imported(lines, 'overwrite'))).toEqual({ written: 5, skipped: 0 });
  expect(await bed.get('/v1/kv/a%2F1')).toMatchObject({ value: 'value of a/1' });

  const other = new KeysBed();
  expect(await other.done(imported(lines))).toEqual({ written: 5, skipped: 0 });
  const exported = (await other.lines('/v1/kv-export')) as { readonly key?: unknown; readonly value?: unknown }[];
  const pairs = ({ key, value }: { readonly key?: unknown; readonly value?: unknown }) => ({ key, value });
  expect(exported.map(pairs)).toEqual((lines as typeof exported).map(pairs));
});

test('an export of many keys is read page by page, at one revision', async () => {
  for (let i = 0; i < 30; i++) await bed.put(`k${i}`, 'v'.repeat(64 * 1024));
  const reading = bed.lines('/v1/kv-export');
  await bed.put('k', 'meanwhile');
  const lines = await reading;
  expect(lines).toHaveLength(31);
  expect(lines.at(-1)).toEqual({ end: { keys: 30, revision: 31 } });
});

test('an export that cannot go on ends with an error in place of its end, and cannot be imported', async () => {
  for (let i = 0; i < 10; i++) await bed.put(`k${i}`, 'v'.repeat(64 * 1024));
  const { keys } = bed.world.backend;
  const query = keys.query.bind(keys);
  let scans = 0;
  keys.query = (asked, options, done) => {
    if (asked.type !== 'scan' || ++scans === 1) return query(asked, options, done);
    done(new ServiceError('COMPACTED', 'gone', { details: { compactRevision: 9 } }), undefined);
    return () => {};
  };
  const lines = await bed.lines('/v1/kv-export');
  expect(lines.at(-1)).toMatchObject({ error: { code: 'COMPACTED', compactRevision: 9 } });
  const { status, body } = await bed.world.until(bed.ask(imported(lines)));
  expect([status, (body as { error: { message: string } }).error.message]).toEqual([
    400,
    `line ${lines.length} is the error with which an export ended: export again`,
  ]);
  keys.query = query;
  expect((await bed.lines('/v1/kv-export?prefix=k0')).length).toBe(2);
});

test('an export at a revision that was compacted is refused', async () => {
  await bed.put('k', '1');
  const newest = await bed.put('k', '2');
  await bed.command({ type: 'compact', revision: newest });
  const [line] = await bed.lines(`/v1/kv-export?revision=${newest - 1}`);
  expect(line).toMatchObject({ error: { code: 'COMPACTED' } });
  expect(await bed.refused({ method: 'GET', target: '/v1/kv-export?after=a' })).toBe('400 INVALID_ARGUMENT');
});

describe('an import', () => {
  test.each([
    { name: 'a line without a value', lines: [{ key: 'a' }], said: 'line 1: value is missing' },
    { name: 'a line that is no object', lines: [{ key: 'a', value: '' }, 7], said: 'line 2: must be a JSON object' },
    { name: 'a misspelt field', lines: [{ key: 'a', valu: '' }], said: 'value is missing' },
    { name: 'an unknown field', lines: [{ key: 'a', value: '', ttl: 3 }], said: 'unknown field line 1: ttl' },
    { name: 'an empty key', lines: [{ key: '', value: '' }], said: 'line 1: the key is empty' },
  ])('with $name writes nothing', async ({ lines, said }) => {
    const all = [{ key: 'first', value: 'v' }, ...lines.slice(1)];
    const asked = lines.length > 1 ? all : lines;
    const { status, body } = await bed.world.until(bed.ask(imported(asked)));
    expect([status, (body as { error: { message: string } }).error.message]).toEqual([
      400,
      expect.stringContaining(said),
    ]);
    expect(await bed.get('/v1/kv')).toMatchObject({ kvs: [] });
  });

  test('of too many lines, or with an unknown mode, is refused', async () => {
    const many = Array.from({ length: 2_002 }, (_, i) => ({ key: `k${i}`, value: '' }));
    const { body } = await bed.world.until(bed.ask(imported(many)));
    expect((body as { error: { message: string } }).error.message).toContain('at most 2000 lines, not 2002');
    expect(await bed.refused(imported([], 'merge'))).toBe('400 INVALID_ARGUMENT');
  });

  test('takes JSON lines only, and no other call does', async () => {
    expect(await bed.refused({ target: '/v1/kv-import', body: { key: 'a', value: '' } })).toBe('415 INVALID_ARGUMENT');
    const call = { method: 'PUT', target: '/v1/kv/k', lines: [{ value: 'v' }] };
    expect(await bed.refused(call)).toBe('415 INVALID_ARGUMENT');
  });

  test('waits while the node is over its limit, and says what it has done if a key cannot be written', async () => {
    const { keys } = bed.world.backend;
    const command = keys.command.bind(keys);
    let [asked, code] = [0, 'RESOURCE_EXHAUSTED' as 'RESOURCE_EXHAUSTED' | 'UNAVAILABLE'];
    keys.command = (change, options, done) => {
      if (++asked % 20 !== 0) return command(change, options, done);
      done(new ServiceError(code, 'not now', { details: { retryAfterMs: 100 } }), undefined);
      return () => {};
    };
    const lines = Array.from({ length: 100 }, (_, i) => ({ key: `k${i}`, value: '' }));
    expect(await bed.done(imported(lines, 'overwrite'))).toEqual({ written: 100, skipped: 0 });
    code = 'UNAVAILABLE';
    const { status, body } = await bed.world.until(bed.ask(imported(lines, 'overwrite')));
    expect([status, body]).toMatchObject([504, { error: { code: 'UNKNOWN_OUTCOME', retry: 'same' } }]);
    expect((body as { error: { message: string } }).error.message).toMatch(
      /^\d+ keys were written and 0 skipped, then/,
    );
    asked = 19;
    const one = bed.ask(imported([{ key: 'k', value: '' }], 'overwrite'));
    expect(await bed.world.until(one)).toMatchObject({ status: 503, body: { error: { code: 'UNAVAILABLE' } } });
  });
});

test('the document names nothing of this that was not seen here', () => {
  expect(unseenAnswers((answer) => /kv-(export|import) (?!410)/.test(answer))).toEqual([]);
});
