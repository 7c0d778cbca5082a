import type { KvResult, TxnResult } from '@remora/protocol';
import type * as pb from '@remora/protocol/etcd';
import { expect, test } from 'vitest';
import { fromTxn } from './kv-responses.ts';

const HEADER = { clusterId: 1n, memberId: 2, revision: 10, raftTerm: 3 };
const read: KvResult = { type: 'range', kvs: [], more: false, count: 0 };
const put: KvResult = { type: 'put', prev: undefined };
const deleted = (count: number): KvResult => ({ type: 'delete', deleted: count, prev: [] });
const txn = (...results: readonly KvResult[]): TxnResult => ({ type: 'txn', succeeded: true, results });

/** Revisions in the headers of the parts; those of a nested transaction behind its own. */
function revisions(responses: readonly pb.ResponseOp[]): readonly (number | undefined)[] {
  return responses.flatMap(({ response }) => [
    response?.value.header?.revision,
    ...(response?.$case === 'responseTxn' ? revisions(response.value.responses) : []),
  ]);
}

const ROWS: readonly { readonly name: string; readonly given: TxnResult; readonly expect: readonly number[] }[] = [
  { name: 'only reads: all at the revision of the transaction', given: txn(read, txn(read)), expect: [10, 0, 10] },
  { name: 'a read before a put shows what was there before', given: txn(read, put, read), expect: [9, 10, 10] },
  { name: 'a delete of nothing changes nothing', given: txn(deleted(0), deleted(2), deleted(0)), expect: [9, 10, 10] },
  { name: 'only deletes of nothing', given: txn(read, deleted(0)), expect: [10, 10] },
  {
    name: 'a nested one names no revision; its parts do',
    given: txn(read, txn(read, put), txn(read)),
    expect: [9, 0, 9, 10, 0, 10],
  },
];

test.each(ROWS)('revisions of the parts of a transaction, as in etcd: $name', ({ given, expect: expected }) => {
  const response = fromTxn(given, HEADER);
  expect(response.header).toEqual(HEADER);
  expect(revisions(response.responses)).toEqual(expected);
});
