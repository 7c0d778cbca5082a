import { ServiceError } from '@remora/base';
import type { DeleteOp, KeyCompare, KeyRange, KvOp, PutOp, RangeOp, Txn } from '@remora/protocol';
import type * as pb from '@remora/protocol/etcd';
import { checkOps } from '../request-limits.ts';
import type { EtcdLimits } from './limits.ts';

/**
 * Turns etcd's KV requests into typed, checked operations. The checks and their order are those of etcd
 * (`server/etcdserver/api/v3rpc/key.go`); the backend does the last one, that no key is changed twice.
 *
 * Q1. A client may send any 64-bit number. Revisions and versions inside Remora are safe integers well below 2^53, so a
 *     larger number is replaced by one with the same answer.
 */

const SORT_ORDERS = ['none', 'ascend', 'descend'] as const;
const SORT_TARGETS = ['key', 'version', 'create', 'mod', 'value'] as const;
const COMPARE_RESULTS = ['equal', 'greater', 'less', 'notEqual'] as const;

export function toRangeOp(request: pb.RangeRequest): RangeOp {
  if (request.key.length === 0) throw emptyKey();
  const sortOrder = SORT_ORDERS[request.sortOrder];
  const sortTarget = SORT_TARGETS[request.sortTarget];
  if (sortOrder === undefined || sortTarget === undefined) {
    throw invalid('the sort order or target is unknown', 'invalidSortOption');
  }
  const mod = toBounds(request.minModRevision, request.maxModRevision);
  const create = toBounds(request.minCreateRevision, request.maxCreateRevision);
  return {
    type: 'range',
    ...toKeyRange(request),
    limit: atLeastZero(request.limit),
    revision: atLeastZero(request.revision),
    // As in etcd: keys are in ascending order anyway, and "none" with another target sorts in ascending order.
    sortOrder: sortOrder === 'none' && sortTarget !== 'key' ? 'ascend' : sortOrder,
    sortTarget,
    keysOnly: request.keysOnly,
    countOnly: request.countOnly,
    minModRevision: mod.min,
    maxModRevision: mod.max,
    minCreateRevision: create.min,
    maxCreateRevision: create.max,
  };
}

export function toPutOp(request: pb.PutRequest): PutOp {
  if (request.key.length === 0) throw emptyKey();
  if (request.ignoreValue && request.value.length > 0) throw invalid('ignore_value with a value', 'valueProvided');
  if (request.ignoreLease && request.lease !== 0n) throw invalid('ignore_lease with a lease', 'leaseProvided');
  return {
    type: 'put',
    key: request.key,
    value: request.value,
    lease: request.lease,
    prevKv: request.prevKv,
    ignoreValue: request.ignoreValue,
    ignoreLease: request.ignoreLease,
  };
}

export function toDeleteOp(request: pb.DeleteRangeRequest): DeleteOp {
  if (request.key.length === 0) throw emptyKey();
  return { type: 'delete', ...toKeyRange(request), prevKv: request.prevKv };
}

export function toTxn(request: pb.TxnRequest, limits: EtcdLimits): Txn {
  return nestedTxn(request, { opsMax: limits.txnOpsMax, depthLeft: limits.txnDepthMax });
}

/** A revision to compact at; below 0 everything counts as compacted, as in etcd. */
export function toCompactRevision(revision: bigint): number {
  if (revision < 0n) throw new ServiceError('COMPACTED', `revision ${revision} is negative; send 0 or more`);
  return safe(revision);
}

/** Empty `range_end`: one key. "\0": everything from `key` on. */
export function toKeyRange(request: { readonly key: Uint8Array; readonly rangeEnd: Uint8Array }): KeyRange {
  const { key, rangeEnd } = request;
  if (rangeEnd.length === 0) return { key };
  return { key, end: rangeEnd.length === 1 && rangeEnd[0] === 0 ? rangeEnd.subarray(1) : rangeEnd };
}

interface TxnRoom {
  readonly opsMax: number;
  readonly depthLeft: number;
}

function nestedTxn(request: pb.TxnRequest, room: TxnRoom): Txn {
  if (room.depthLeft === 0) throw new ServiceError('TOO_MANY_OPERATIONS', 'the transaction is nested too deeply');
  const inner = { opsMax: checkOps(request, room.opsMax), depthLeft: room.depthLeft - 1 };
  return {
    compare: request.compare.map(toCompare),
    success: request.success.map((op) => toOp(op, inner)),
    failure: request.failure.map((op) => toOp(op, inner)),
  };
}

function toOp(op: pb.RequestOp, room: TxnRoom): KvOp {
  const request = op.request;
  switch (request?.$case) {
    case 'requestRange':
      return toRangeOp(request.value);
    case 'requestPut':
      return toPutOp(request.value);
    case 'requestDeleteRange':
      return toDeleteOp(request.value);
    case 'requestTxn':
      return { type: 'txn', txn: nestedTxn(request.value, room) };
    case undefined:
      throw invalid('an operation of the transaction is empty', 'keyNotFound');
  }
}

/** A target without its value compares with zero or nothing, as in etcd. */
function toCompare(compare: pb.Compare): KeyCompare {
  if (compare.key.length === 0) throw emptyKey();
  const result = COMPARE_RESULTS[compare.result];
  if (result === undefined) throw invalid('the compare result is unknown');
  const range = toKeyRange(compare);
  const union = compare.targetUnion;
  switch (compare.target) {
    case 0:
      return numberCompare(range, result, 'version', union?.$case === 'version' ? union.value : 0n);
    case 1:
      return numberCompare(range, result, 'create', union?.$case === 'createRevision' ? union.value : 0n);
    case 2:
      return numberCompare(range, result, 'mod', union?.$case === 'modRevision' ? union.value : 0n);
    case 3:
      return { ...range, result, target: { of: 'value', value: union?.$case === 'value' ? union.value : EMPTY } };
    case 4:
      return { ...range, result, target: { of: 'lease', value: union?.$case === 'lease' ? union.value : 0n } };
    default:
      throw invalid('the compare target is unknown');
  }
}

const EMPTY = Buffer.alloc(0);

/** Q1. Real numbers are in [0, 2^53 - 1): a comparison with a number outside has the same outcome for all of them. */
function numberCompare(
  range: KeyRange,
  result: KeyCompare['result'],
  of: 'version' | 'create' | 'mod',
  value: bigint,
): KeyCompare {
  if (value >= 0n) return { ...range, result, target: { of, value: safe(value) } };
  if (result === 'greater' || result === 'notEqual') {
    return { ...range, result: 'notEqual', target: { of, value: Number.MAX_SAFE_INTEGER } };
  }
  return { ...range, result: 'less', target: { of, value: 0 } };
}

/** Q1. Negative means the same as absent. */
function atLeastZero(value: bigint): number {
  return value <= 0n ? 0 : safe(value);
}

/** Q1. No revision is above 2^53, so a larger upper bound excludes nothing; one below 0 excludes all. */
function toBounds(min: bigint, max: bigint): { readonly min: number; readonly max: number } {
  if (max < 0n) return { min: Number.MAX_SAFE_INTEGER, max: 0 };
  return { min: atLeastZero(min), max: max > MAX_SAFE ? 0 : Number(max) };
}

const MAX_SAFE = BigInt(Number.MAX_SAFE_INTEGER);

function safe(value: bigint): number {
  return value > MAX_SAFE ? Number.MAX_SAFE_INTEGER : Number(value);
}

function emptyKey(): ServiceError {
  return new ServiceError('EMPTY_KEY', 'a key is missing');
}

function invalid(message: string, etcd?: string): ServiceError {
  return new ServiceError('INVALID_ARGUMENT', message, etcd === undefined ? {} : { details: { etcd } });
}
