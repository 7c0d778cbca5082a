import { SeededRandom } from '@remora/base';
import { describe, expect, test } from 'vitest';
import { boltFile, meta, type WriterOptions, withHash } from '../../test/support/bolt-writer.ts';
import { bucketsOf, type Change, type Storage, snapshotOf } from '../../test/support/etcd-storage.ts';
import type { ByteSource } from './byte-source.ts';
import { EtcdFileError } from './etcd-file-error.ts';
import { EtcdSnapshot, type SnapshotOptions } from './etcd-snapshot.ts';

const ALL: SnapshotOptions = { prefix: Buffer.alloc(0), checkHash: true };
const SILENT = { hashed() {}, scanned() {} };

function sourceOf(file: Buffer): ByteSource {
  return { size: file.length, read: async (at, length) => file.subarray(at, at + length) };
}

function using<T>(file: Buffer, use: (snapshot: EtcdSnapshot) => Promise<T>, options = ALL): Promise<T> {
  return EtcdSnapshot.with(sourceOf(file), { options, progress: SILENT }, use);
}

/** `key=value` of all live keys. */
async function contents(snapshot: EtcdSnapshot): Promise<readonly string[]> {
  const found: string[] = [];
  for await (const entry of snapshot.keys()) {
    const { key, value, lease } = await snapshot.pair(entry);
    found.push(`${key}=${value}${lease === 0n ? '' : ` of ${lease}`}`);
  }
  return found;
}

const SMALL: Storage = {
  changes: [
    { key: 'b', value: 'old' },
    { key: 'a', value: '1', lease: 7n },
    { key: 'gone', value: 'x' },
    { key: 'b', value: 'new' },
    { key: 'gone' },
    { key: 'back', value: '1' },
    { key: 'back' },
    { key: 'back', value: '2' },
  ],
  leases: [
    { id: 7n, ttlS: 60 },
    { id: -3n, ttlS: 5 },
  ],
  users: [{ name: 'root', password: '$2a$10$hash', roles: ['root'] }],
  roles: ['reader'],
};

describe('a snapshot of etcd', () => {
  test('has the newest value of each key that was not deleted (ES2)', async () => {
    expect(await using(snapshotOf(SMALL), contents)).toEqual(['a=1 of 7', 'b=new', 'back=2']);
  });

  test.each([undefined, '3.6.0'])('says what else it holds; storage version %s', async (storageVersion) => {
    const file = snapshotOf({ ...SMALL, ...(storageVersion === undefined ? {} : { storageVersion }) });
    await using(file, async ({ facts, leases, users, roles }) => {
      expect(facts).toEqual({ storageVersion, revision: 9, compacted: 0, authEnabled: true, members: 1, alarms: 0 });
      expect([...leases.values()]).toEqual(SMALL.leases);
      expect(users).toEqual([{ name: 'root', hasPassword: true, roles: ['root'] }]);
      const permission = { access: 'readWrite', key: Buffer.from('k'), rangeEnd: Buffer.from('l') };
      expect(roles).toEqual([{ name: 'reader', permissions: [permission] }]);
    });
  });

  test('may be empty', async () => {
    await using(snapshotOf({ changes: [] }), async (snapshot) => {
      expect([await contents(snapshot), snapshot.facts.revision]).toEqual([[], 1]);
    });
  });

  test('below a prefix has only those keys', async () => {
    const options = { ...ALL, prefix: Buffer.from('b') };
    expect(await using(snapshotOf(SMALL), contents, options)).toEqual(['b=new', 'back=2']);
  });

  const layouts: readonly { readonly name: string; readonly options: WriterOptions }[] = [
    { name: 'small pages, so that branches have several levels', options: { pageSize: 1_024 } },
    { name: 'large pages', options: { pageSize: 65_536 } },
    { name: 'all buckets inline', options: { inline: Object.keys(bucketsOf(SMALL)).filter((name) => name !== 'key') } },
  ];
  test.each(layouts)('is read by $name', async ({ options }) => {
    const random = new SeededRandom(5);
    const changes = Array.from({ length: 4_000 }, (_, i): Change => {
      const key = `k${random.int(900)}`;
      if (random.int(5) === 0) return { key };
      return { key, value: i % 500 === 0 ? Buffer.alloc(100_000, i) : `v${i}` };
    });
    const model = new Map<string, string>();
    for (const { key, value } of changes) {
      if (value === undefined) model.delete(key);
      else model.set(key, String(value));
    }
    const expected = [...model].sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, value]) => `${key}=${value}`);
    expect(await using(snapshotOf({ ...SMALL, changes }, options), contents)).toEqual(expected);
  });

  test('is read by its second meta page if the first one is damaged', async () => {
    const file = boltFile(bucketsOf(SMALL));
    file.fill(0, 0, 100);
    expect(await using(withHash(file), contents)).toHaveLength(3);
  });

  test('without a hash is read when its check is switched off', async () => {
    expect(await using(boltFile(bucketsOf(SMALL)), contents, { ...ALL, checkHash: false })).toHaveLength(3);
  });
});

describe('refused is', () => {
  const whole = snapshotOf(SMALL);
  const database = whole.subarray(0, -32);
  const flipped = Buffer.from(whole);
  flipped[9_000] = (flipped[9_000] ?? 0) ^ 1;
  const other = Buffer.from(database);
  meta({ id: 0, pageSize: 4_096, root: 3, end: 9, txid: 99n, version: 3 }).copy(other);
  other.fill(0, 4_096, 4_300);
  const rows: readonly { readonly name: string; readonly file: Buffer; readonly says: string }[] = [
    { name: 'an empty file', file: Buffer.alloc(0), says: 'has no SHA-256 at its end' },
    { name: 'a database without its hash', file: database, says: 'has no SHA-256 at its end' },
    { name: 'a file that was cut', file: whole.subarray(0, -4_096), says: 'SHA-256 does not match' },
    { name: 'another byte', file: flipped, says: 'SHA-256 does not match' },
    { name: 'another file', file: withHash(Buffer.alloc(512)), says: 'is not a bbolt database' },
    { name: 'another database', file: withHash(boltFile({ users: [] })), says: 'without the buckets of etcd' },
    { name: 'another version', file: withHash(other), says: 'bbolt database of version 3' },
    { name: 'a part of a database', file: withHash(database.subarray(0, 4 * 4_096)), says: 'is damaged' },
  ];
  test.each(rows)('$name', async ({ file, says }) => {
    const error = await using(file, contents).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(EtcdFileError);
    expect(String(error)).toContain(says);
  });

  test('a page that refers to itself, without a hang (BT2)', async () => {
    const file = boltFile(
      { ...bucketsOf(SMALL), key: bucketsOf({ changes: many(500) }).key ?? [] },
      { pageSize: 1_024 },
    );
    // Every branch page refers to itself.
    for (let at = 3 * 1_024; at < file.length; at += 1_024) {
      if (file.readUInt16LE(at + 8) !== 1) continue;
      for (let i = 0; i < file.readUInt16LE(at + 10); i++) file.copy(file, at + 16 + 16 * i + 8, at, at + 8);
    }
    await expect(using(withHash(file), contents)).rejects.toThrow(/nested more than|more than once/);
  });

  test('one with rows out of order (BT1)', async () => {
    const buckets = bucketsOf(SMALL);
    const file = boltFile({ ...buckets, key: [...(buckets.key ?? [])].reverse() });
    await expect(using(withHash(file), contents)).rejects.toThrow('out of order');
  });
});

function many(count: number): readonly Change[] {
  return Array.from({ length: count }, (_, i) => ({ key: `k${i}`, value: 'v'.repeat(50) }));
}
