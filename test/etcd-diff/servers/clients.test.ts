import { PutResponse } from '@remora/protocol/etcd';
import { expect, test } from 'vitest';
import { withSmallMemberId } from './clients.ts';

const MEMBER_ID = Buffer.from([0x10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]);

test('a member id of 64 bits is read as 1, and all other fields as they are', () => {
  const header = Buffer.concat([Buffer.from([0x08, 0x05]), MEMBER_ID, Buffer.from([0x18, 0xac, 0x02, 0x20, 0x07])]);
  const rest = PutResponse.encode(
    PutResponse.fromPartial({ prevKv: { key: Buffer.from('k'), modRevision: 9 } }),
  ).finish();
  const bytes = Buffer.concat([Buffer.from([0x0a, header.length]), header, rest]);
  const read = PutResponse.decode(withSmallMemberId(bytes));
  expect(read.header).toEqual({ clusterId: 5n, memberId: 1, revision: 300, raftTerm: 7 });
  expect(read.prevKv).toMatchObject({ modRevision: 9 });
});

test('an answer without a header, or without a member id, is read as it is', () => {
  for (const header of [undefined, { clusterId: 5n, revision: 3 }]) {
    const bytes = Buffer.from(PutResponse.encode(PutResponse.fromPartial({ header })).finish());
    expect(withSmallMemberId(bytes)).toEqual(bytes);
  }
});
