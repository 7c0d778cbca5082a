import * as pb from '@remora/protocol/etcd';
import { describe, expect, it } from 'vitest';
import { toCompactRevision, toPutOp, toRangeOp, toTxn } from './kv-requests.ts';
import { ETCD_LIMITS } from './limits.ts';

const bytes = (text: string) => Buffer.from(text, 'latin1');

function put(key: string): pb.RequestOp {
  return { request: { $case: 'requestPut', value: pb.PutRequest.create({ key: bytes(key) }) } };
}
function del(key: string, rangeEnd = ''): pb.RequestOp {
  const value = pb.DeleteRangeRequest.create({ key: bytes(key), rangeEnd: bytes(rangeEnd) });
  return { request: { $case: 'requestDeleteRange', value } };
}
function txnOp(success: pb.RequestOp[], failure: pb.RequestOp[] = []): pb.RequestOp {
  return { request: { $case: 'requestTxn', value: { compare: [], success, failure } } };
}
function txn(success: pb.RequestOp[], failure: pb.RequestOp[] = [], compare: pb.Compare[] = []) {
  return toTxn({ compare, success, failure }, ETCD_LIMITS);
}
function codeOf(run: () => unknown): string {
  try {
    run();
    return 'ok';
  } catch (error) {
    return (error as { code: string }).code;
  }
}

describe('toRangeOp', () => {
  const range = (request: pb.DeepPartial<pb.RangeRequest>) =>
    toRangeOp(pb.RangeRequest.create({ key: bytes('k'), ...request }));

  it('knows one key, a range, and everything from a key on', () => {
    expect(range({}).end).toBeUndefined();
    expect(range({ rangeEnd: bytes('l') }).end).toEqual(bytes('l'));
    expect(range({ rangeEnd: bytes('\0') }).end).toHaveLength(0);
    expect(range({ rangeEnd: bytes('\0\0') }).end).toEqual(bytes('\0\0'));
  });

  it('refuses an empty key and unknown sort options', () => {
    expect(codeOf(() => range({ key: bytes('') }))).toBe('EMPTY_KEY');
    expect(codeOf(() => range({ sortOrder: 7 as 0 }))).toBe('INVALID_ARGUMENT');
    expect(codeOf(() => range({ sortTarget: 7 as 0 }))).toBe('INVALID_ARGUMENT');
  });

  it('sorts upwards by a target other than the key unless told otherwise', () => {
    expect(range({}).sortOrder).toBe('none');
    expect(range({ sortTarget: 3 })).toMatchObject({ sortOrder: 'ascend', sortTarget: 'mod' });
    expect(range({ sortTarget: 4, sortOrder: 2 })).toMatchObject({ sortOrder: 'descend', sortTarget: 'value' });
  });

  const max = 2n ** 63n - 1n;
  const numbers: readonly { name: string; given: pb.DeepPartial<pb.RangeRequest>; expect: object }[] = [
    { name: 'a negative revision is the newest', given: { revision: -1n }, expect: { revision: 0 } },
    { name: 'a huge revision is in the future', given: { revision: max }, expect: { revision: 2 ** 53 - 1 } },
    { name: 'a negative limit is none', given: { limit: -5n }, expect: { limit: 0 } },
    { name: 'a huge upper bound is none', given: { maxModRevision: max }, expect: { maxModRevision: 0 } },
    {
      name: 'a huge lower bound excludes all',
      given: { minModRevision: max },
      expect: { minModRevision: 2 ** 53 - 1 },
    },
    {
      name: 'a negative upper bound of mod revisions excludes all, as in etcd',
      given: { minModRevision: 3n, maxModRevision: -1n },
      expect: { minModRevision: 2 ** 53 - 1, maxModRevision: 0 },
    },
    {
      name: 'a negative upper bound of create revisions excludes all, as in etcd',
      given: { maxCreateRevision: -max - 1n },
      expect: { minCreateRevision: 2 ** 53 - 1, maxCreateRevision: 0 },
    },
    { name: 'a negative lower bound is none', given: { minCreateRevision: -1n }, expect: { minCreateRevision: 0 } },
  ];
  for (const row of numbers) it(row.name, () => expect(range(row.given)).toMatchObject(row.expect));
});

describe('toCompactRevision', () => {
  const max = 2n ** 63n - 1n;
  it('keeps 0, makes a huge revision one of the future, and calls a negative one compacted', () => {
    expect([0n, 7n, max].map(toCompactRevision)).toEqual([0, 7, Number.MAX_SAFE_INTEGER]);
    expect(codeOf(() => toCompactRevision(-5n))).toBe('COMPACTED');
  });
});

describe('toPutOp', () => {
  const putOp = (request: pb.DeepPartial<pb.PutRequest>) =>
    toPutOp(pb.PutRequest.create({ key: bytes('k'), ...request }));

  it('refuses what contradicts itself', () => {
    expect(codeOf(() => putOp({ key: bytes('') }))).toBe('EMPTY_KEY');
    expect(codeOf(() => putOp({ ignoreValue: true, value: bytes('v') }))).toBe('INVALID_ARGUMENT');
    expect(codeOf(() => putOp({ ignoreLease: true, lease: 1n }))).toBe('INVALID_ARGUMENT');
    expect(codeOf(() => putOp({ ignoreLease: true, ignoreValue: true }))).toBe('ok');
  });

  it('keeps all 63 bits of a lease id', () => {
    expect(putOp({ lease: 2n ** 63n - 1n }).lease).toBe(2n ** 63n - 1n);
  });
});

describe('toTxn', () => {
  const rows: readonly { name: string; ops: pb.RequestOp[]; expect: string }[] = [
    { name: 'different keys', ops: [put('a'), put('b'), del('c')], expect: 'ok' },
    { name: 'an operation that is empty', ops: [{ request: undefined }], expect: 'INVALID_ARGUMENT' },
    { name: 'an empty key inside', ops: [txnOp([put('')])], expect: 'EMPTY_KEY' },
    { name: '128 operations', ops: Array.from({ length: 128 }, (_, i) => put(`k${i}`)), expect: 'ok' },
    { name: '129 operations', ops: Array.from({ length: 129 }, (_, i) => put(`k${i}`)), expect: 'TOO_MANY_OPERATIONS' },
    {
      name: '128 operations on one path',
      ops: [
        ...Array.from({ length: 64 }, (_, i) => put(`k${i}`)),
        txnOp(Array.from({ length: 64 }, (_, i) => put(`n${i}`))),
      ],
      expect: 'TOO_MANY_OPERATIONS',
    },
  ];
  for (const row of rows) it(`${row.name}: ${row.expect}`, () => expect(codeOf(() => txn(row.ops))).toBe(row.expect));

  it('nests 16 levels, and refuses more', () => {
    const nested = (levels: number): pb.RequestOp => (levels === 1 ? put('a') : txnOp([nested(levels - 1)]));
    expect(codeOf(() => txn([nested(16)]))).toBe('ok');
    expect(codeOf(() => txn([nested(17)]))).toBe('TOO_MANY_OPERATIONS');
  });

  const compares: readonly { name: string; given: pb.DeepPartial<pb.Compare>; expect: object }[] = [
    {
      name: 'a create revision',
      given: { target: 1, targetUnion: { $case: 'createRevision', value: 5n } },
      expect: { result: 'equal', target: { of: 'create', value: 5 } },
    },
    {
      name: 'a target without its value is its zero',
      given: { target: 3, result: 3 },
      expect: { result: 'notEqual', target: { of: 'value', value: Buffer.alloc(0) } },
    },
    {
      name: 'a value of another target is not taken for it',
      given: { target: 2, targetUnion: { $case: 'version', value: 5n } },
      expect: { target: { of: 'mod', value: 0 } },
    },
    {
      name: 'a lease keeps its 64 bits',
      given: { target: 4, targetUnion: { $case: 'lease', value: 2n ** 62n } },
      expect: { target: { of: 'lease', value: 2n ** 62n } },
    },
    {
      name: 'every version is greater than a negative number',
      given: { target: 0, result: 1, targetUnion: { $case: 'version', value: -1n } },
      expect: { result: 'notEqual', target: { of: 'version', value: Number.MAX_SAFE_INTEGER } },
    },
    {
      name: 'none is less',
      given: { target: 0, result: 2, targetUnion: { $case: 'version', value: -1n } },
      expect: { result: 'less', target: { of: 'version', value: 0 } },
    },
  ];
  for (const row of compares) {
    it(`compares: ${row.name}`, () => {
      const compare = pb.Compare.create({ key: bytes('k'), ...row.given });
      expect(txn([], [], [compare]).compare[0]).toMatchObject(row.expect);
    });
  }
});
