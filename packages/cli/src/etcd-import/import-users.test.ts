import { expect, test } from 'vitest';
import { snapshotOf } from '../../test/support/etcd-storage.ts';
import { EtcdSnapshot } from './etcd-snapshot.ts';
import { usersNotes, usersOf } from './import-users.ts';

const STORAGE = {
  changes: [],
  users: [{ name: 'ann', password: '$2a$10$hash', roles: ['reader'] }],
  roles: ['reader'],
};

test('users of etcd come without their passwords, and authentication stays off', async () => {
  const file = snapshotOf(STORAGE);
  const source = { size: file.length, read: async (at: number, length: number) => file.subarray(at, at + length) };
  const options = { prefix: Buffer.alloc(0), checkHash: true };
  await EtcdSnapshot.with(source, { options, progress: { hashed() {}, scanned() {} } }, async (snapshot) => {
    expect(usersOf(snapshot)).toEqual({
      enabled: false,
      users: [{ name: 'ann', passwordHash: '', roles: ['reader'] }],
      roles: [
        {
          name: 'reader',
          keys: [{ access: 'readWrite', key: Buffer.from('k'), end: Buffer.from('l') }],
          locks: [],
        },
      ],
    });
    expect(usersNotes(snapshot, undefined)).toEqual([
      'ignored 1 user and 1 role (--with-users); authentication was on in etcd',
    ]);
  });
});
