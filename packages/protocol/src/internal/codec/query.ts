import { unreachable } from '@remora/base';
import {
  decodeLockQuery,
  decodeLockQueryResult,
  decodeLockResult,
  decodeRevocation,
  encodeLockQuery,
  encodeLockQueryResult,
  encodeLockResult,
  encodeRevocation,
  type LockId,
  type Owner,
} from '@remora/lock';
import type { LeaseInfo, Query, QueryResult, RangeStatus } from '../command.ts';
import {
  asBool,
  asBytes,
  asCount,
  asFields,
  asLease,
  asList,
  asMs,
  asText,
  asTextMap,
  invalid,
  leaseToWire,
  textMapToWire,
} from './check.ts';
import {
  decodeKeyValue,
  decodeKvResult,
  decodeRangeOp,
  decodeTxn,
  encodeKeyValue,
  encodeKvResult,
  encodeRangeOp,
  encodeTxn,
} from './kv.ts';
import {
  decodeSessionQuery,
  decodeSessionResult,
  encodeSessionQuery,
  encodeSessionResult,
  isSessionTag,
} from './session.ts';
import { asTxnId, decodeTxnState, encodeTxnState } from './transaction.ts';

/** Tags of queries and their results, apart from those of commands so that a mix-up cannot decode. 56–57: session.ts. */
const QUERY = {
  range: 32,
  readTxn: 33,
  leaseKeepAlive: 34,
  leaseTimeToLive: 35,
  leases: 36,
  lock: 37,
  status: 38,
  lockAwait: 39,
  grantEnd: 40,
  closedRevision: 41,
  scan: 42,
  txnStatus: 43,
  grantAsked: 51,
  leaseKeys: 50,
} as const;

export function encodeQuery(query: Query): unknown[] {
  switch (query.type) {
    case 'range':
      return [QUERY.range, encodeRangeOp(query.op), query.serializable];
    case 'leaseKeepAlive':
      return [QUERY.leaseKeepAlive, query.id, query.incarnation];
    case 'lock':
      return [QUERY.lock, encodeLockQuery(query.query)];
    case 'readTxn':
      return [QUERY.readTxn, encodeTxn(query.txn), query.serializable];
    case 'leaseTimeToLive':
      return [QUERY.leaseTimeToLive, query.id, query.keys];
    case 'leaseKeys':
      return [QUERY.leaseKeys, leaseToWire(query.id), query.incarnation];
    case 'leases':
      return [QUERY.leases];
    case 'sessions':
    case 'session':
      return encodeSessionQuery(query);
    case 'lockAwait':
      return [QUERY.lockAwait, encodeLockRef(query.lock, query.owner)];
    case 'grantEnd':
      return [
        QUERY.grantEnd,
        query.lock.namespace,
        query.lock.name,
        query.version,
        query.session.lease,
        query.session.incarnation,
        ...(query.known === undefined ? [] : [query.known]),
      ];
    case 'closedRevision':
      return [QUERY.closedRevision, query.revision];
    case 'scan':
      return [QUERY.scan, query.key, query.end, query.revision, query.bytes];
    case 'txnStatus':
      return [QUERY.txnStatus, query.txnId, query.primaryKey];
    case 'status':
      return [QUERY.status];
    default:
      return unreachable(query);
  }
}

export function decodeQuery(raw: unknown): Query {
  if (!Array.isArray(raw)) throw invalid('query');
  switch (raw[0]) {
    case QUERY.range: {
      const f = asFields(raw, 3, 'range query');
      return { type: 'range', op: decodeRangeOp(f[1]), serializable: asBool(f[2], 'serializable') };
    }
    case QUERY.leaseKeepAlive: {
      const f = asFields(raw, 3, 'lease keep-alive');
      return { type: 'leaseKeepAlive', id: asLease(f[1], 'lease id'), incarnation: asCount(f[2], 'lease incarnation') };
    }
    case QUERY.lock:
      return { type: 'lock', query: decodeLockQuery(asFields(raw, 2, 'lock query')[1]) };
    case QUERY.readTxn: {
      const f = asFields(raw, 3, 'read transaction');
      return { type: 'readTxn', txn: decodeTxn(f[1]), serializable: asBool(f[2], 'serializable') };
    }
    case QUERY.leaseTimeToLive: {
      const f = asFields(raw, 3, 'lease time-to-live');
      return { type: 'leaseTimeToLive', id: asLease(f[1], 'lease id'), keys: asBool(f[2], 'keys') };
    }
    case QUERY.leaseKeys: {
      const f = asFields(raw, 3, 'lease keys');
      return { type: 'leaseKeys', id: asLease(f[1], 'lease id'), incarnation: asCount(f[2], 'lease incarnation') };
    }
    case QUERY.leases:
      asFields(raw, 1, 'leases query');
      return { type: 'leases' };
    case QUERY.lockAwait:
      return { type: 'lockAwait', ...decodeLockRef(asFields(raw, 2, 'lock await')[1]) };
    case QUERY.grantEnd: {
      const f = asFields(raw, raw.length === 7 ? 7 : 6, 'grant end');
      const known = raw.length === 7 ? { known: asCount(f[6], 'known request') } : {};
      const lock = { namespace: asText(f[1], 'lock namespace'), name: asBytes(f[2], 'lock name') };
      const session = { lease: asLease(f[4], 'session lease'), incarnation: asCount(f[5], 'session incarnation') };
      return { type: 'grantEnd', lock, version: asCount(f[3], 'lock version'), session, ...known };
    }
    case QUERY.scan:
      return decodeScan(raw);
    case QUERY.closedRevision:
      return { type: 'closedRevision', revision: asCount(asFields(raw, 2, 'closed revision')[1], 'revision') };
    case QUERY.txnStatus: {
      const f = asFields(raw, 3, 'status of a transaction');
      return { type: 'txnStatus', txnId: asTxnId(f[1]), primaryKey: asBytes(f[2], 'primary key') };
    }
    case QUERY.status:
      asFields(raw, 1, 'status query');
      return { type: 'status' };
    default:
      if (isSessionTag(raw[0])) return decodeSessionQuery(raw);
      throw invalid('query tag');
  }
}

function decodeScan(raw: unknown): Query {
  const f = asFields(raw, 5, 'scan');
  return {
    type: 'scan',
    key: asBytes(f[1], 'scan.key'),
    end: asBytes(f[2], 'scan.end'),
    revision: asCount(f[3], 'scan.revision'),
    bytes: asCount(f[4], 'scan.bytes'),
  };
}

export function encodeQueryResult(result: QueryResult): unknown[] {
  switch (result.type) {
    case 'put':
    case 'delete':
    case 'range':
    case 'txn':
      return [QUERY.range, encodeKvResult(result)];
    case 'leaseKeepAlive':
      return [QUERY.leaseKeepAlive, result.id, result.incarnation, result.ttlMs];
    case 'lock':
      return [QUERY.lock, encodeLockQueryResult(result.result)];
    case 'lockAwait':
      return [QUERY.lockAwait, encodeLockResult(result.result)];
    case 'grantEnd':
      return [QUERY.grantEnd, result.sessionAlive];
    case 'grantAsked':
      return [QUERY.grantAsked, encodeRevocation(result.revocation)];
    case 'leaseTimeToLive':
      return [QUERY.leaseTimeToLive, encodeLeaseInfo(result.lease)];
    case 'leaseKeys':
      return [QUERY.leaseKeys, result.keys.slice()];
    case 'leases':
      return [QUERY.leases, result.ids.slice()];
    case 'sessions':
    case 'session':
      return encodeSessionResult(result);
    case 'closedRevision':
      return [QUERY.closedRevision, result.closed, result.floor];
    case 'scan':
      return [QUERY.scan, result.kvs.map(encodeKeyValue), result.next ?? null];
    case 'txnStatus':
      return [QUERY.txnStatus, encodeTxnState(result.outcome)];
    case 'status':
      return [QUERY.status, encodeRangeStatus(result.status)];
    default:
      return unreachable(result);
  }
}

export function decodeQueryResult(raw: unknown): QueryResult {
  if (!Array.isArray(raw)) throw invalid('query result');
  switch (raw[0]) {
    case QUERY.range:
      return decodeKvResult(asFields(raw, 2, 'kv result')[1]);
    case QUERY.leaseKeepAlive: {
      const f = asFields(raw, 4, 'keep-alive result');
      return {
        type: 'leaseKeepAlive',
        id: asLease(f[1], 'lease id'),
        incarnation: asCount(f[2], 'lease incarnation'),
        ttlMs: asMs(f[3], 'lease ttl'),
      };
    }
    case QUERY.lock:
      return { type: 'lock', result: decodeLockQueryResult(asFields(raw, 2, 'lock query result')[1]) };
    case QUERY.lockAwait:
      return { type: 'lockAwait', result: decodeLockResult(asFields(raw, 2, 'lock await result')[1]) };
    case QUERY.grantAsked:
      return { type: 'grantAsked', revocation: decodeRevocation(asFields(raw, 2, 'grant asked')[1]) };
    case QUERY.grantEnd:
      return { type: 'grantEnd', sessionAlive: asBool(asFields(raw, 2, 'grant end result')[1], 'sessionAlive') };
    case QUERY.leaseTimeToLive:
      return { type: 'leaseTimeToLive', lease: decodeLeaseInfo(asFields(raw, 2, 'time-to-live result')[1]) };
    case QUERY.leaseKeys: {
      const [, keys] = asFields(raw, 2, 'lease keys result');
      return { type: 'leaseKeys', keys: asList(keys, 'lease keys', (key) => asBytes(key, 'lease key')) };
    }
    case QUERY.leases:
      return {
        type: 'leases',
        ids: asList(asFields(raw, 2, 'leases result')[1], 'lease ids', (id) => asLease(id, 'lease id')),
      };
    case QUERY.scan: {
      const f = asFields(raw, 3, 'scan result');
      const next = f[2] === null ? undefined : asBytes(f[2], 'scan next');
      return { type: 'scan', kvs: asList(f[1], 'scan pairs', decodeKeyValue), next };
    }
    case QUERY.closedRevision: {
      const f = asFields(raw, 3, 'closed revision result');
      return { type: 'closedRevision', closed: asCount(f[1], 'closed'), floor: asCount(f[2], 'floor') };
    }
    case QUERY.txnStatus:
      return { type: 'txnStatus', outcome: decodeTxnState(asFields(raw, 2, 'state of a transaction')[1]) };
    case QUERY.status:
      return { type: 'status', status: decodeRangeStatus(asFields(raw, 2, 'status result')[1]) };
    default:
      if (isSessionTag(raw[0])) return decodeSessionResult(raw);
      throw invalid('query result tag');
  }
}

function encodeLockRef(lock: LockId, owner: Owner): unknown[] {
  return [lock.namespace, lock.name, owner.session.lease, owner.session.incarnation, owner.token];
}

function decodeLockRef(raw: unknown): { lock: LockId; owner: Owner } {
  const f = asFields(raw, 5, 'lock reference');
  const session = { lease: asLease(f[2], 'session lease'), incarnation: asCount(f[3], 'session incarnation') };
  return {
    lock: { namespace: asText(f[0], 'lock namespace'), name: asBytes(f[1], 'lock name') },
    owner: { session, token: asText(f[4], 'owner token') },
  };
}

/** One that does not end when it is empty is what it was before there were any that do. */
function encodeLeaseInfo(lease: LeaseInfo): unknown[] {
  const fields = [
    leaseToWire(lease.id),
    lease.incarnation,
    lease.grantedTtlMs,
    lease.remainingMs,
    lease.keys.slice(),
    textMapToWire(lease.attributes),
  ];
  return lease.endsEmpty ? [...fields, true] : fields;
}

function decodeLeaseInfo(raw: unknown): LeaseInfo {
  const f = asFields(raw, Array.isArray(raw) && raw.length === 7 ? 7 : 6, 'lease info');
  return {
    id: asLease(f[0], 'lease id'),
    incarnation: asCount(f[1], 'lease incarnation'),
    grantedTtlMs: asMs(f[2], 'lease grantedTtlMs'),
    remainingMs: asMs(f[3], 'lease remainingMs'),
    keys: asList(f[4], 'lease keys', (key) => asBytes(key, 'lease key')),
    attributes: asTextMap(f[5], 'lease attributes'),
    endsEmpty: f.length === 7 && asBool(f[6], 'lease endsEmpty'),
  };
}

export function encodeRangeStatus(s: RangeStatus): unknown[] {
  return [
    s.rangeId,
    s.leaderNode,
    s.term,
    s.commit,
    s.applied,
    s.revision,
    s.compactRevision,
    s.bytes,
    s.keys,
    s.leases,
    s.watches,
    s.replicas.map((r) => [r.replicaId, r.nodeId, r.match, r.commit, r.state]),
  ];
}

export function decodeRangeStatus(raw: unknown): RangeStatus {
  const f = asFields(raw, 12, 'range status');
  return {
    rangeId: asCount(f[0], 'status.rangeId'),
    leaderNode: asCount(f[1], 'status.leaderNode'),
    term: asCount(f[2], 'status.term'),
    commit: asCount(f[3], 'status.commit'),
    applied: asCount(f[4], 'status.applied'),
    revision: asCount(f[5], 'status.revision'),
    compactRevision: asCount(f[6], 'status.compactRevision'),
    bytes: asCount(f[7], 'status.bytes'),
    keys: asCount(f[8], 'status.keys'),
    leases: asCount(f[9], 'status.leases'),
    watches: asCount(f[10], 'status.watches'),
    replicas: asList(f[11], 'status.replicas', (replica) => {
      const r = asFields(replica, 5, 'replica status');
      return {
        replicaId: asCount(r[0], 'replica.replicaId'),
        nodeId: asCount(r[1], 'replica.nodeId'),
        match: asCount(r[2], 'replica.match'),
        commit: asCount(r[3], 'replica.commit'),
        state: asText(r[4], 'replica.state'),
      };
    }),
  };
}
