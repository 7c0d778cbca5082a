import { createHash } from 'node:crypto';
import { EtcdFileError } from '../../../packages/cli/src/etcd-import/etcd-file-error.ts';
import { EtcdSnapshot } from '../../../packages/cli/src/etcd-import/etcd-snapshot.ts';
import { boltFile } from '../../../packages/cli/test/support/bolt-writer.ts';
import { bucketsOf, changeRows, snapshotOf } from '../../../packages/cli/test/support/etcd-storage.ts';
import type { Target } from '../target.ts';

// Snapshots of etcd: as they are, so that most mutations are found by the hash; with a hash that fits the mutated
// database, so that its pages are reached; and rows of the bucket of keys.

const STORAGE = {
  changes: Array.from({ length: 60 }, (_, i) => ({ key: `k${i % 40}`, ...(i % 7 === 0 ? {} : { value: `v${i}` }) })),
  leases: [{ id: 7n, ttlS: 60 }],
  users: [{ name: 'root', password: 'hash', roles: ['root'] }],
  roles: ['reader'],
  storageVersion: '3.6.0',
};
const PAGE = { pageSize: 1_024 };

async function decode(file: Uint8Array): Promise<void> {
  const bytes = Buffer.from(file);
  const source = { size: bytes.length, read: async (at: number, n: number) => bytes.subarray(at, at + n) };
  const options = { prefix: Buffer.alloc(0), checkHash: true };
  await EtcdSnapshot.with(source, { options, progress: { hashed() {}, scanned() {} } }, async (snapshot) => {
    for await (const entry of snapshot.keys()) await snapshot.pair(entry);
  });
}

const expected = (error: unknown): boolean => error instanceof EtcdFileError;

/** Pads to the size of a database, and appends the hash. */
function hashed(database: Uint8Array): Buffer {
  const padded = Buffer.alloc(Math.ceil(database.length / 512) * 512);
  padded.set(database);
  return Buffer.concat([padded, createHash('sha256').update(padded).digest()]);
}

const files: Target = {
  name: 'etcd-snapshot',
  corpus: () => [snapshotOf(STORAGE, PAGE), snapshotOf({ changes: [] })],
  decode,
  expected,
};

const databases: Target = {
  name: 'etcd-database',
  corpus: () => [
    boltFile(bucketsOf(STORAGE), PAGE),
    boltFile(bucketsOf(STORAGE), { ...PAGE, inline: Object.keys(bucketsOf(STORAGE)) }),
  ],
  decode: (database) => decode(hashed(database)),
  expected,
};

const rows: Target = {
  name: 'etcd-row',
  corpus: () => Object.values(bucketsOf(STORAGE)).flatMap((bucket) => bucket.slice(0, 2).map(([, value]) => value)),
  async decode(value) {
    const [[key = Buffer.of()] = []] = changeRows(STORAGE.changes);
    const row = [[key, Buffer.from(value)]] as const;
    for (const bucket of ['key', 'lease', 'authUsers', 'authRoles', 'meta']) {
      const file = hashed(boltFile({ ...bucketsOf(STORAGE), [bucket]: row }));
      await decode(file).catch((error: unknown) => {
        if (!expected(error)) throw error;
      });
    }
  },
  expected,
};

export const ETCD_SNAPSHOT_TARGETS: readonly Target[] = [files, databases, rows];
