import { SeededRandom } from '@remora/base';
import { describe, expect, test } from 'vitest';
import type { KeyValue } from '../internal/kv-types.ts';
import { BackupEncoder, type BackupPart, decodeBackup } from './backup-format.ts';
import { BACKUP_FORMAT, BackupError } from './backup-frames.ts';

const HEADER = { clusterId: 'c', revision: 40, pairs: 3, takenAtMs: 1_700_000_000_000, program: '0.1.0' };

function pair(key: string, more: Partial<KeyValue> = {}): KeyValue {
  const [bytes, value] = [Buffer.from(key), Buffer.from(`value of ${key}`)];
  return { key: bytes, value, createRevision: 3, modRevision: 5, version: 2, lease: 0n, ...more };
}

const PAGES = [[pair('a'), pair('b', { lease: -5n, value: Buffer.of() })], [pair('c')]];

function encoded(pages: readonly (readonly KeyValue[])[] = PAGES, header = HEADER): Buffer {
  const encoder = new BackupEncoder();
  return Buffer.concat([encoder.begin(header), ...pages.map((page) => encoder.pairs(page)), encoder.end()]);
}

async function decode(file: Buffer): Promise<readonly BackupPart[]> {
  let at = 0;
  const read = async (bytes: number): Promise<Buffer> => {
    const piece = file.subarray(at, at + bytes);
    at += piece.length;
    return piece;
  };
  const parts: BackupPart[] = [];
  for await (const part of decodeBackup(read)) parts.push(part);
  return parts;
}

async function problem(file: Buffer): Promise<string> {
  const error = await decode(file).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(BackupError);
  return String(error);
}

describe('a backup file', () => {
  test('gives back what was written', async () => {
    expect(await decode(encoded())).toEqual([
      { type: 'header', header: HEADER },
      ...PAGES.map((pairs) => ({ type: 'pairs', pairs })),
    ]);
    expect(await decode(encoded([], { ...HEADER, pairs: 0 }))).toHaveLength(1);
  });

  const hash = Buffer.alloc(32, 0xab);
  const padded = (file: Buffer): Buffer => Buffer.concat([file, Buffer.alloc((512 - (file.length % 512)) % 512)]);

  test('may have the padding and the hash of an image of etcd (BF3)', async () => {
    expect(await decode(Buffer.concat([padded(encoded()), hash]))).toEqual(await decode(encoded()));
  });

  test('may have nothing else behind its end (BF3)', async () => {
    const file = encoded();
    const rests = [
      hash,
      padded(file).subarray(file.length),
      Buffer.concat([Buffer.alloc(512), hash]),
      Buffer.alloc(600),
    ];
    for (const rest of rests) expect(await problem(Buffer.concat([file, rest]))).toContain('follows its end');
    const dirty = Buffer.concat([padded(file), hash]);
    dirty[file.length] = 1;
    expect(await problem(dirty)).toContain('follows its end');
  });

  test('is refused wherever it is cut', async () => {
    const file = encoded();
    for (let length = 0; length < file.length; length++) await problem(file.subarray(0, length));
  });

  test('is refused whichever byte is another one', async () => {
    const [file, random] = [encoded(), new SeededRandom(7)];
    for (let at = 0; at < file.length; at++) {
      const damaged = Buffer.from(file);
      damaged[at] = (file[at] ?? 0) ^ (1 + random.int(255));
      await problem(damaged);
    }
  });

  const [a = pair(''), b = pair(''), c = pair('')] = PAGES.flat();
  const wrong: readonly { name: string; file: Buffer; says: string }[] = [
    { name: 'empty', file: Buffer.of(), says: 'is not a backup' },
    { name: 'something else', file: Buffer.from('{"this is":"json"}'), says: 'is not a backup' },
    { name: 'newer', file: Buffer.from(encoded()).fill(BACKUP_FORMAT + 1, 7, 8), says: 'has format 3' },
    { name: 'going on behind its end', file: Buffer.concat([encoded(), Buffer.of(1)]), says: 'follows its end' },
    { name: 'two in one', file: Buffer.concat([encoded(), encoded()]), says: 'follows its end' },
    { name: 'short of a page', file: encoded([[a, b]]), says: 'its end record counts other parts' },
    { name: 'out of order', file: encoded([[b, a], [c]]), says: 'out of order' },
    { name: 'out of order between pages', file: encoded([[b], [a, c]]), says: 'out of order' },
    { name: 'one with a key twice', file: encoded([[a, a], [c]]), says: 'out of order' },
  ];
  test.each(wrong)('that is $name is refused', async ({ file, says }) => {
    expect(await problem(file)).toContain(says);
  });

  test('whose pages were exchanged for those of another one is refused', async () => {
    const other = PAGES.map((page) => page.map(({ key, ...rest }) => ({ ...rest, key, value: Buffer.from('other') })));
    const encoder = new BackupEncoder();
    encoder.begin(HEADER);
    for (const page of PAGES) encoder.pairs(page);
    const rightEnd = encoder.end();
    const mixed = new BackupEncoder();
    const begin = mixed.begin(HEADER);
    const file = Buffer.concat([begin, ...other.map((page) => mixed.pairs(page)), rightEnd]);
    expect(await problem(file)).toContain('its end record counts other parts');
  });
});

describe('a backup of format 2', () => {
  const SINCE = { ...HEADER, since: 30, withUsers: true as const };
  const USERS = {
    enabled: true,
    users: [{ name: 'root', passwordHash: 'hash', roles: ['root'] }],
    roles: [{ name: 'reader', keys: [{ access: 'read' as const, key: Buffer.from('a') }], locks: [] }],
  };
  const [a = pair(''), c = pair('')] = [pair('a'), pair('c')];

  function incremental(header: typeof SINCE | typeof HEADER = SINCE, users = [USERS], keys = ['b']): Buffer {
    const encoder = new BackupEncoder();
    const begin = encoder.begin(header);
    const changes = [encoder.pairs([a]), encoder.deleted(keys.map((key) => Buffer.from(key))), encoder.pairs([c])];
    return Buffer.concat([begin, ...changes, ...users.map((content) => encoder.users(content)), encoder.end()]);
  }

  test('gives back changed pairs, deleted keys and users', async () => {
    expect(await decode(incremental())).toEqual([
      { type: 'header', header: SINCE },
      { type: 'pairs', pairs: [a] },
      { type: 'deleted', keys: [Buffer.from('b')] },
      { type: 'pairs', pairs: [c] },
      { type: 'users', content: USERS },
    ]);
  });

  test('is written only for what format 1 lacks (BF4)', () => {
    expect([encoded()[7], incremental()[7]]).toEqual([1, 2]);
  });

  test('is refused wherever it is cut, and whichever byte is another one', async () => {
    const [file, random] = [incremental(), new SeededRandom(9)];
    for (let at = 0; at < file.length; at++) {
      await problem(file.subarray(0, at));
      const damaged = Buffer.from(file);
      damaged[at] = (file[at] ?? 0) ^ (1 + random.int(255));
      await problem(damaged);
    }
  });

  const { since: _, ...whole } = SINCE;
  const rows: readonly { readonly name: string; readonly file: Buffer; readonly says: string }[] = [
    { name: 'without the users that it should have', file: incremental(SINCE, []), says: 'counts other parts' },
    { name: 'with users twice', file: incremental(SINCE, [USERS, USERS]), says: 'counts other parts' },
    { name: 'whole, and with deleted keys', file: incremental(whole as typeof SINCE), says: 'counts other parts' },
    { name: 'with a deleted key out of order', file: incremental(SINCE, [USERS], ['d']), says: 'out of order' },
  ];
  test.each(rows)('is refused $name', async ({ file, says }) => {
    expect(await problem(file)).toContain(says);
  });
});
