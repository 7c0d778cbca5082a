/** Steps as requests of etcd's API, with the revisions and leases of one server. */
import {
  CompactionRequest,
  type Compare,
  DeleteRangeRequest,
  LeaseGrantRequest,
  LeaseKeepAliveRequest,
  LeaseRevokeRequest,
  LeaseTimeToLiveRequest,
  PutRequest,
  RangeRequest,
  type RequestOp,
  TxnRequest,
  WatchCreateRequest,
} from '@remora/protocol/etcd';
import type {
  CompactStep,
  Comparison,
  DeleteStep,
  GrantStep,
  Lease,
  LeaseStep,
  Operation,
  PutStep,
  RangeStep,
  Revision,
  Span,
  TimeToLiveStep,
  TxnStep,
  WatchStep,
} from '../requests/requests.ts';

/** What one server calls what steps name. */
export interface Numbers {
  revision(revision: Revision): bigint;
  lease(lease: Lease): bigint;
  /** The id to ask for: 0 where the server chooses. */
  leaseToGrant(lease: Lease): bigint;
}

export function rangeRequest(step: RangeStep, numbers: Numbers): RangeRequest {
  const at = (revision: Revision | undefined): bigint => (revision === undefined ? 0n : numbers.revision(revision));
  return RangeRequest.fromPartial({
    ...spanOf(step),
    limit: step.limit ?? 0n,
    revision: at(step.revision),
    sortOrder: (step.sortOrder ?? 0) as RangeRequest['sortOrder'],
    sortTarget: (step.sortTarget ?? 0) as RangeRequest['sortTarget'],
    serializable: step.serializable ?? false,
    keysOnly: step.keysOnly ?? false,
    countOnly: step.countOnly ?? false,
    minModRevision: at(step.minMod),
    maxModRevision: at(step.maxMod),
    minCreateRevision: at(step.minCreate),
    maxCreateRevision: at(step.maxCreate),
  });
}

export function putRequest(step: PutStep, numbers: Numbers): PutRequest {
  return PutRequest.fromPartial({
    key: bytesOf(step.key),
    value: bytesOf(step.value),
    lease: step.lease === undefined ? 0n : numbers.lease(step.lease),
    prevKv: step.prevKv ?? false,
    ignoreValue: step.ignoreValue ?? false,
    ignoreLease: step.ignoreLease ?? false,
  });
}

export function deleteRequest(step: DeleteStep): DeleteRangeRequest {
  return DeleteRangeRequest.fromPartial({ ...spanOf(step), prevKv: step.prevKv ?? false });
}

export function txnRequest({ compare, success, failure }: TxnStep, numbers: Numbers): TxnRequest {
  return TxnRequest.fromPartial({
    compare: compare.map((one) => comparison(one, numbers)),
    success: success.map((op) => operation(op, numbers)),
    failure: failure.map((op) => operation(op, numbers)),
  });
}

export function compactRequest({ revision, physical }: CompactStep, numbers: Numbers): CompactionRequest {
  return CompactionRequest.fromPartial({ revision: numbers.revision(revision), physical });
}

export function grantRequest({ lease, ttl }: GrantStep, numbers: Numbers): LeaseGrantRequest {
  return LeaseGrantRequest.fromPartial({ ID: numbers.leaseToGrant(lease), TTL: ttl });
}

export function revokeRequest({ lease }: LeaseStep, numbers: Numbers): LeaseRevokeRequest {
  return LeaseRevokeRequest.fromPartial({ ID: numbers.lease(lease) });
}

export function keepAliveRequest({ lease }: LeaseStep, numbers: Numbers): LeaseKeepAliveRequest {
  return LeaseKeepAliveRequest.fromPartial({ ID: numbers.lease(lease) });
}

export function timeToLiveRequest({ lease, keys }: TimeToLiveStep, numbers: Numbers): LeaseTimeToLiveRequest {
  return LeaseTimeToLiveRequest.fromPartial({ ID: numbers.lease(lease), keys });
}

export function watchRequest(step: WatchStep, numbers: Numbers): WatchCreateRequest {
  return WatchCreateRequest.fromPartial({
    ...spanOf(step),
    startRevision: step.start === undefined ? 0n : numbers.revision(step.start),
    progressNotify: step.progressNotify ?? false,
    filters: [...(step.noPut ? [0 as const] : []), ...(step.noDelete ? [1 as const] : [])],
    prevKv: step.prevKv ?? false,
    watchId: step.id ?? 0n,
    fragment: step.fragment ?? false,
  });
}

function operation(op: Operation, numbers: Numbers): RequestOp {
  switch (op.do) {
    case 'range':
      return { request: { $case: 'requestRange', value: rangeRequest(op, numbers) } };
    case 'put':
      return { request: { $case: 'requestPut', value: putRequest(op, numbers) } };
    case 'delete':
      return { request: { $case: 'requestDeleteRange', value: deleteRequest(op) } };
    case 'txn':
      return { request: { $case: 'requestTxn', value: txnRequest(op, numbers) } };
    case 'nothing':
      return { request: undefined };
  }
}

function comparison(step: Comparison, numbers: Numbers): Compare {
  const { key, rangeEnd } = spanOf(step);
  return {
    ...{ key, rangeEnd },
    result: step.result as Compare['result'],
    target: step.target as Compare['target'],
    targetUnion: unionOf(step, numbers),
  };
}

function unionOf({ with: given }: Comparison, numbers: Numbers): Compare['targetUnion'] {
  if (given === undefined) return undefined;
  if ('version' in given) return { $case: 'version', value: given.version };
  if ('create' in given) return { $case: 'createRevision', value: numbers.revision(given.create) };
  if ('mod' in given) return { $case: 'modRevision', value: numbers.revision(given.mod) };
  if ('value' in given) return { $case: 'value', value: bytesOf(given.value) };
  return { $case: 'lease', value: numbers.lease(given.lease) };
}

function spanOf({ key, end = '' }: Span): { readonly key: Buffer; readonly rangeEnd: Buffer } {
  return { key: bytesOf(key), rangeEnd: bytesOf(end) };
}

function bytesOf(text: string): Buffer {
  return Buffer.from(text, 'latin1');
}
