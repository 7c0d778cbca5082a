import type { ServiceError } from '@remora/base';
import * as pb from '@remora/protocol/etcd';
import { describe, expect, test } from 'vitest';
import { fromJson, toJson } from './json-codec.ts';
import { readJsonValue } from './json-reader.ts';
import { ETCD_PATHS } from './routes.ts';

interface Generated {
  create(): unknown;
  fromPartial(parts: object): unknown;
  encode(message: unknown): { finish(): Uint8Array };
  decode(bytes: Uint8Array): unknown;
}

const FILES: Readonly<Record<string, object>> = {
  ...{ etcdserverpb: pb, mvccpb: pb, authpb: pb, v3lockpb: pb.v3lockpb, v3electionpb: pb.v3electionpb },
};

/** The generated code of a message; undefined for those that are not exported. */
function generated(type: string): Generated | undefined {
  const [file = '', ...name] = type.split('.');
  return (FILES[file] as Readonly<Record<string, Generated>> | undefined)?.[name.join('_')];
}

const MESSAGES = Object.keys(pb.ETCD_SCHEMA.messages).filter((type) => generated(type) !== undefined);

test.each(MESSAGES)('an empty object is an empty %s, which is written as one', (type) => {
  const message = fromJson(type, readJsonValue('{}'));
  expect(message).toEqual(generated(type)?.create());
  expect(toJson(type, message)).toEqual({});
});

test('the schema has the messages that clients see', () => {
  expect(MESSAGES.length).toBeGreaterThan(100);
});

test('every method of every service has a path, and each path is of one method', () => {
  const listed = Object.values(ETCD_PATHS).map(({ service, paths }) => [service, Object.keys(paths).sort()]);
  const defined = Object.entries(pb.ETCD_SCHEMA.services).map(([service, methods]) => [
    service,
    Object.keys(methods).sort(),
  ]);
  expect(listed.sort()).toEqual(defined.sort());
  const paths = Object.values(ETCD_PATHS).flatMap((service) => Object.values<readonly string[]>(service.paths).flat());
  expect(new Set(paths).size).toBe(paths.length);
});

const request = (type: string, text: string): unknown => fromJson(`etcdserverpb.${type}`, readJsonValue(text));
const ID = 7_587_862_094_123_456_789n;

describe('requests (JC1, JC2)', () => {
  const rows: readonly (readonly [string, string, string, object])[] = [
    ['both forms of names', 'RangeRequest', '{"range_end":"Yg==","keysOnly":true}', { rangeEnd: 'b', keysOnly: true }],
    ['unknown names', 'RangeRequest', '{"nonsense":{"a":[1]},"limit":1}', { limit: 1n }],
    ['null', 'RangeRequest', '{"key":null,"limit":null,"sort_order":null}', { key: '', limit: 0n, sortOrder: 0 }],
    ['nothing at all', 'RangeRequest', '', { key: '' }],
    ['numbers as strings', 'LeaseGrantRequest', `{"ID":"${ID}","TTL":"-5"}`, { ID, TTL: -5n }],
    ['bare numbers of 63 bits', 'LeaseGrantRequest', `{"ID":${ID}}`, { ID }],
    [
      'the largest unsigned number',
      'MoveLeaderRequest',
      `{"targetID":${2n ** 64n - 1n}}`,
      { targetID: 2n ** 64n - 1n },
    ],
    [
      'enums by name and by number',
      'RangeRequest',
      '{"sort_order":"DESCEND","sortTarget":3}',
      { sortOrder: 2, sortTarget: 3 },
    ],
    ['an unknown number of an enum', 'RangeRequest', '{"sort_order":99}', { sortOrder: 99 }],
    ['lists of enums', 'WatchCreateRequest', '{"filters":["NODELETE",0]}', { filters: [1, 0] }],
    ['base64 of URLs', 'PutRequest', '{"key":"_-8=","value":"_-8"}', { key: '\xff\xef', value: '\xff\xef' }],
    ['base64 over several lines', 'PutRequest', '{"key":"Zm9v\\nYmFy"}', { key: 'foobar' }],
  ];
  test.each(rows)('%s', (_, type, text, expected) => {
    const plain = Object.entries(expected).map(([name, value]) => [
      name,
      typeof value === 'string' ? Buffer.from(value, 'latin1') : value,
    ]);
    expect(request(type, text)).toMatchObject(Object.fromEntries(plain));
  });

  test('a transaction, with unions and what is nested', () => {
    const text =
      '{"compare":[{"target":"VALUE","key":"Zm9v","value":"YmFy"},{"create_revision":"5","target":1}],' +
      '"success":[{"requestTxn":{"failure":[{"request_range":{}}]}},{}]}';
    expect(request('TxnRequest', text)).toMatchObject({
      compare: [
        { target: 3, targetUnion: { $case: 'value', value: Buffer.from('bar') } },
        { target: 1, targetUnion: { $case: 'createRevision', value: 5n } },
      ],
      success: [
        { request: { $case: 'requestTxn', value: { failure: [{ request: { $case: 'requestRange' } }] } } },
        { request: undefined },
      ],
    });
  });

  test.each([
    ['RangeRequest', '[]', 'the body: expected an object'],
    ['RangeRequest', '{"key":5}', 'key: expected base64'],
    ['RangeRequest', '{"key":"***"}', 'key: expected base64'],
    ['RangeRequest', '{"key":"Zm9vY"}', 'key: expected base64'],
    ['RangeRequest', '{"key":"Zm9vYg="}', 'key: expected base64'],
    ['RangeRequest', '{"key":"Zm=vYg=="}', 'key: expected base64'],
    ['RangeRequest', '{"key":"Zm+_"}', 'key: expected base64'],
    ['RangeRequest', '{"key":"===="}', 'key: expected base64'],
    ['RangeRequest', '{"limit":3.5}', 'limit: expected a whole number'],
    ['RangeRequest', '{"limit":1e2}', 'limit: expected a whole number'],
    ['RangeRequest', '{"limit":"x"}', 'limit: expected a whole number'],
    ['RangeRequest', `{"limit":${2n ** 63n}}`, 'limit: expected a whole number from -9223372036854775808'],
    ['MoveLeaderRequest', '{"targetID":-1}', 'targetID: expected a whole number from 0 to'],
    ['RangeRequest', '{"keys_only":"true"}', 'keys_only: expected true or false'],
    ['RangeRequest', '{"sort_order":"UP"}', 'sort_order: expected one of NONE, ASCEND, DESCEND'],
    ['MemberAddRequest', '{"peerURLs":"http://a"}', 'peerURLs: expected a list'],
    ['MemberAddRequest', '{"peerURLs":[5]}', 'peerURLs[0]: expected text'],
    ['TxnRequest', '{"success":[{"request_put":{"key":7}}]}', 'success[0].request_put.key: expected base64'],
    ['RequestOp', '{"request_put":{},"request_range":{}}', 'request_put: another field of request is set as well'],
  ])('%s %s is refused', (type, text, message) => {
    let error: unknown;
    try {
      request(type, text);
    } catch (thrown) {
      error = thrown;
    }
    expect((error as ServiceError).code).toBe('INVALID_ARGUMENT');
    expect((error as ServiceError).message).toContain(message);
  });
});

test('responses have names of the protobuf files, numbers as strings, names of enums, and no defaults (JC3)', () => {
  const header = { clusterId: 2n ** 64n - 1n, memberId: 3, revision: 9, raftTerm: 0 };
  const kv = {
    key: Buffer.from('foo'),
    createRevision: 2,
    modRevision: 9,
    version: 1,
    value: Buffer.alloc(0),
    lease: ID,
  };
  const watch = pb.WatchResponse.fromPartial({
    header,
    watchId: -1n,
    events: [
      { type: 1, kv },
      { type: 0, kv },
    ],
  });
  const shown = { key: 'Zm9v', create_revision: '2', mod_revision: '9', version: '1', lease: String(ID) };
  expect(toJson('etcdserverpb.WatchResponse', watch)).toEqual({
    header: { cluster_id: '18446744073709551615', member_id: '3', revision: '9' },
    watch_id: '-1',
    events: [{ type: 'DELETE', kv: shown }, { kv: shown }],
  });
  const txn = pb.TxnResponse.fromPartial({
    succeeded: true,
    responses: [{ response: { $case: 'responsePut', value: {} } }, { response: { $case: 'responseTxn', value: {} } }],
  });
  expect(toJson('etcdserverpb.TxnResponse', txn)).toEqual({
    succeeded: true,
    responses: [{ response_put: {} }, { response_txn: {} }],
  });
  const hash = { header: undefined, hash: 5, compactRevision: 4, hashRevision: 0 };
  expect(toJson('etcdserverpb.HashKVResponse', hash)).toEqual({ hash: 5, compact_revision: '4' });
});
