/** Requests that are wrong, by method; each is sent to etcd and to Remora. */
import * as pb from '@remora/protocol/etcd';

const SERVICES = {
  kv: pb.KVService,
  lease: pb.LeaseService,
  cluster: pb.ClusterService,
  maintenance: pb.MaintenanceService,
  auth: pb.AuthService,
  lock: pb.v3lockpb.LockService,
  election: pb.v3electionpb.ElectionService,
  health: pb.health.HealthService,
} as const;

type ServiceName = keyof typeof SERVICES;

export interface Mistake {
  readonly name: string;
  readonly method: { readonly path: string };
  /** The encoded request. */
  readonly request: Buffer;
  /** Where the answer differs from etcd 3.4.23: the answer of Remora, and why. */
  readonly differs?: { readonly remora: string; readonly why: string };
}

interface Message<T> {
  fromPartial(object: T): unknown;
}

function mistake<Name extends ServiceName, T>(
  name: string,
  [service, method]: readonly [Name, keyof (typeof SERVICES)[Name] & string],
  [type, request]: readonly [Message<T>, T],
  differs?: Mistake['differs'],
): Mistake {
  const definition = SERVICES[service][method] as unknown as {
    readonly path: string;
    requestSerialize(value: unknown): Buffer;
  };
  const encoded = definition.requestSerialize(type.fromPartial(request));
  return { name, method: definition, request: encoded, ...(differs === undefined ? {} : { differs }) };
}

const k = Buffer.from('k');
const empty = Buffer.alloc(0);
const FAR = 2n ** 62n;
const put = (key: Buffer | string, more: object = {}) =>
  ({ request: { $case: 'requestPut', value: { key: Buffer.from(key), ...more } } }) as const;
const get = (key: Buffer | string, more: object = {}) =>
  ({ request: { $case: 'requestRange', value: { key: Buffer.from(key), ...more } } }) as const;
const remove = (key: string, rangeEnd = '') =>
  ({
    request: { $case: 'requestDeleteRange', value: { key: Buffer.from(key), rangeEnd: Buffer.from(rangeEnd) } },
  }) as const;
const txn = (...success: readonly object[]) =>
  [pb.TxnRequest, { success: success as pb.DeepPartial<pb.RequestOp>[] }] as const;
const nested = (op: object) => ({ request: { $case: 'requestTxn', value: { success: [op] } } }) as const;

const KV: readonly Mistake[] = [
  mistake('a read without a key', ['kv', 'range'], [pb.RangeRequest, {}]),
  mistake('a read of the future', ['kv', 'range'], [pb.RangeRequest, { key: k, revision: FAR }]),
  mistake('a read of what is compacted', ['kv', 'range'], [pb.RangeRequest, { key: k, revision: 1n }]),
  mistake('a write without a key', ['kv', 'put'], [pb.PutRequest, { value: k }]),
  mistake('a write that ignores its value', ['kv', 'put'], [pb.PutRequest, { key: k, value: k, ignoreValue: true }]),
  mistake('a write that ignores its lease', ['kv', 'put'], [pb.PutRequest, { key: k, lease: 5n, ignoreLease: true }]),
  mistake(
    'a write that keeps what is not there',
    ['kv', 'put'],
    [pb.PutRequest, { key: Buffer.from('none'), ignoreValue: true }],
  ),
  mistake(
    'a write that keeps a lease of nothing',
    ['kv', 'put'],
    [pb.PutRequest, { key: Buffer.from('none'), ignoreLease: true }],
  ),
  mistake('a write with an unknown lease', ['kv', 'put'], [pb.PutRequest, { key: k, lease: 4_711n }]),
  mistake('a write that is too large', ['kv', 'put'], [pb.PutRequest, { key: k, value: Buffer.alloc(1_600_000) }]),
  mistake('a delete without a key', ['kv', 'deleteRange'], [pb.DeleteRangeRequest, {}]),
  mistake('a transaction with an empty operation', ['kv', 'txn'], txn({})),
  mistake('a transaction with a write without a key', ['kv', 'txn'], txn(put(empty))),
  mistake('a transaction with a read without a key', ['kv', 'txn'], txn(get(empty))),
  mistake('a comparison without a key', ['kv', 'txn'], [pb.TxnRequest, { compare: [{ target: 1 }] }]),
  mistake('a key that is put twice', ['kv', 'txn'], txn(put('a'), put('a'))),
  mistake('a key that is put twice, once nested', ['kv', 'txn'], txn(put('a'), nested(put('a')))),
  mistake('a key that is put and deleted', ['kv', 'txn'], txn(put('b'), remove('a', 'c'))),
  mistake('129 operations', ['kv', 'txn'], txn(...Array.from({ length: 129 }, (_, i) => put(`k${i}`)))),
  mistake('a transaction that reads the future', ['kv', 'txn'], txn(get('a', { revision: FAR }))),
  mistake('a transaction that reads what is compacted', ['kv', 'txn'], txn(get('a', { revision: 1n }))),
  mistake('a transaction that writes with an unknown lease', ['kv', 'txn'], txn(put('a', { lease: 4_711n }))),
  mistake('a transaction that keeps what is not there', ['kv', 'txn'], txn(put('none', { ignoreValue: true }))),
  mistake('a transaction with a value to ignore', ['kv', 'txn'], txn(put('a', { value: k, ignoreValue: true }))),
  mistake('a compaction of the future', ['kv', 'compact'], [pb.CompactionRequest, { revision: FAR }]),
  mistake('a second compaction', ['kv', 'compact'], [pb.CompactionRequest, { revision: 2n }]),
  mistake('a compaction at 0, after one', ['kv', 'compact'], [pb.CompactionRequest, {}]),
  mistake('a compaction at a negative revision', ['kv', 'compact'], [pb.CompactionRequest, { revision: -5n }]),
];

const LEASES: readonly Mistake[] = [
  mistake('a lease that is granted twice', ['lease', 'leaseGrant'], [pb.LeaseGrantRequest, { ID: 77n, TTL: 100n }]),
  mistake('a lease that lives too long', ['lease', 'leaseGrant'], [pb.LeaseGrantRequest, { TTL: 9_000_000_001n }]),
  mistake('revoking an unknown lease', ['lease', 'leaseRevoke'], [pb.LeaseRevokeRequest, { ID: 4_711n }]),
];

const RECIPES: readonly Mistake[] = [
  mistake('a proclamation without a leader', ['election', 'proclaim'], [pb.v3electionpb.ProclaimRequest, { value: k }]),
  mistake('a resignation without a leader', ['election', 'resign'], [pb.v3electionpb.ResignRequest, {}]),
  mistake(
    'a proclamation of a former leader',
    ['election', 'proclaim'],
    [
      pb.v3electionpb.ProclaimRequest,
      { value: k, leader: { name: k, key: Buffer.from('k/none'), rev: 5n, lease: 77n } },
    ],
  ),
  mistake(
    'the leader of an election without one',
    ['election', 'leader'],
    [pb.v3electionpb.LeaderRequest, { name: Buffer.from('nobody') }],
  ),
  mistake('a lock with an unknown lease', ['lock', 'lock'], [pb.v3lockpb.LockRequest, { name: k, lease: 4_711n }]),
  mistake(
    'a candidate with an unknown lease',
    ['election', 'campaign'],
    [pb.v3electionpb.CampaignRequest, { name: k, lease: 4_711n }],
  ),
];

const OTHERS: readonly Mistake[] = [
  mistake('a user of a cluster without users', ['auth', 'authenticate'], [pb.AuthenticateRequest, { name: 'root' }]),
  mistake('the health of an unknown service', ['health', 'check'], [pb.health.HealthCheckRequest, { service: 'none' }]),
];

export const MISTAKES: readonly Mistake[] = [...KV, ...LEASES, ...RECIPES, ...OTHERS];
