import { utf8 } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import type { Command, Txn } from '@remora/protocol';
import { expect, test } from 'vitest';
import { DiskRoom } from './disk-room.ts';

const MIB = 2 ** 20;

function room(availableBytes: number, capacityBytes = 100 * MIB) {
  const clock = new ManualClock();
  const disk = { capacityBytes, availableBytes, looks: 0 };
  const space = () => {
    disk.looks++;
    return { ...disk };
  };
  return { clock, disk, room: new DiskRoom({ clock, nodeId: 7, space, reserveBytes: 10 * MIB }) };
}

const bytes = utf8('k');
const put = { type: 'put', key: bytes, value: bytes, lease: 0n, prevKv: false } as unknown as Txn['success'][number];
const remove = { type: 'deleteRange', key: bytes, prevKv: false } as unknown as Txn['success'][number];
const txn = (success: Txn['success'], failure: Txn['success'] = []): Command => {
  return { type: 'txn', txn: { compare: [], success, failure } } as Command;
};
const kv = (op: unknown): Command => ({ type: 'kv', op }) as Command;
const nested = { type: 'txn', txn: { compare: [], success: [], failure: [put] } } as Txn['success'][number];

test.each<readonly [string, Command]>([
  ['a put', kv(put)],
  ['a transaction that puts', txn([remove, put])],
  ['one that may put', txn([], [put])],
  ['one that puts within another', txn([nested])],
  ['a part of one over several ranges that puts', { type: 'txnPrepare', ops: [{ op: put }] } as unknown as Command],
])('%s is refused below the reserve (DR1)', (_name, command) => {
  expect(room(10 * MIB - 1).room.refusal(command)).toEqual({
    ...{ limit: 'disk', code: 'RESOURCE_EXHAUSTED', details: { etcd: 'noSpace', retryAfterMs: 1_000 } },
    message:
      'the disk of node 7 has 9 MiB free, and 10 MiB are kept (--disk-reserve) for locks and for what makes room: ' +
      'delete keys and compact, or give it more space',
  });
  expect(room(10 * MIB).room.refusal(command)).toBeUndefined();
});

test.each<readonly [string, Command]>([
  ['a delete', kv(remove)],
  ['a transaction that only deletes', txn([remove], [remove])],
  ['a compaction', { type: 'compact', revision: 5 } as Command],
  ['a lease', { type: 'leaseGrant', id: 5n, ttlMs: 1_000, attributes: {} }],
  ['the end of a session', { type: 'leaseRevoke', id: 5n, incarnation: 0 }],
  ['a lock', { type: 'lock', command: { type: 'acquire' } } as Command],
  ['the end of a transaction', { type: 'txnDecide' } as unknown as Command],
])('%s is let in however little there is (DR1)', (_name, command) => {
  expect(room(0).room.refusal(command)).toBeUndefined();
});

test('a disk of which nothing is known has room (DR3)', () => {
  expect(room(0, 0).room.refusal(kv(put))).toBeUndefined();
});

test('looks at the disk now and then, not for every write, and not for what puts nothing', () => {
  const { clock, disk, room: kept } = room(20 * MIB);
  kept.refusal(kv(remove));
  expect(disk.looks).toBe(0);
  for (let i = 0; i < 100; i++) kept.refusal(kv(put));
  expect(disk.looks).toBe(1);
  disk.availableBytes = 0;
  clock.advance(249);
  expect(kept.refusal(kv(put))).toBeUndefined();
  clock.advance(1);
  expect(kept.refusal(kv(put))).toBeDefined();
  expect(disk.looks).toBe(2);
});
