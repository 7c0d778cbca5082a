import { asBuffer, assert, unreachable } from '@remora/base';
import type { DeleteResult, KeyValue, KvEvent, KvResult, PutResult, RangeResult, TxnResult } from '@remora/protocol';
import type * as pb from '@remora/protocol/etcd';

/** Typed results as etcd's messages. Bytes are shared, not copied: messages are encoded at once. */
export function fromKeyValue(kv: KeyValue): pb.KeyValue {
  return {
    key: asBuffer(kv.key),
    createRevision: kv.createRevision,
    modRevision: kv.modRevision,
    version: kv.version,
    value: asBuffer(kv.value),
    lease: kv.lease,
  };
}

export function fromRange(result: RangeResult, header: pb.ResponseHeader): pb.RangeResponse {
  return { header, kvs: result.kvs.map(fromKeyValue), more: result.more, count: result.count };
}

export function fromPut(result: PutResult, header: pb.ResponseHeader): pb.PutResponse {
  return { header, prevKv: result.prev === undefined ? undefined : fromKeyValue(result.prev) };
}

export function fromDelete(result: DeleteResult, header: pb.ResponseHeader): pb.DeleteRangeResponse {
  return { header, deleted: result.deleted, prevKvs: result.prev.map(fromKeyValue) };
}

export function fromTxn(result: TxnResult, header: pb.ResponseHeader): pb.TxnResponse {
  // In a transaction only the revision is set in inner headers.
  const inner = { clusterId: 0n, memberId: 0, revision: header.revision, raftTerm: 0 };
  return {
    header,
    succeeded: result.succeeded,
    responses: result.results.map((each) => ({ response: fromResult(each, inner) })),
  };
}

export function fromEvent(event: KvEvent): pb.Event {
  return {
    type: event.type === 'put' ? 0 : 1,
    kv: event.type === 'put' ? fromKeyValue(event.kv) : tombstone(event.kv),
    prevKv: event.prev === undefined ? undefined : fromKeyValue(event.prev),
  };
}

/** About what an event takes in a message. */
export function eventBytes(event: KvEvent): number {
  const { kv, prev } = event;
  const own = kv.key.length + kv.value.length + 32;
  return prev === undefined ? own : own + prev.key.length + prev.value.length + 32;
}

function fromResult(result: KvResult, header: pb.ResponseHeader): pb.ResponseOp['response'] {
  switch (result.type) {
    case 'range':
      return { $case: 'responseRange', value: fromRange(result, header) };
    case 'put':
      return { $case: 'responsePut', value: fromPut(result, header) };
    case 'delete':
      return { $case: 'responseDeleteRange', value: fromDelete(result, header) };
    case 'txn':
      return { $case: 'responseTxn', value: fromTxn(result, header) };
    default:
      return unreachable(result);
  }
}

const NO_VALUE = Buffer.alloc(0);

function tombstone(kv: KeyValue): pb.KeyValue {
  return {
    key: asBuffer(kv.key),
    createRevision: 0,
    modRevision: kv.modRevision,
    version: 0,
    value: NO_VALUE,
    lease: 0n,
  };
}

/** A backend answers with the kind of result that was asked for; another one is a broken invariant. */
export function expectType<Result extends { readonly type: string }, Type extends Result['type']>(
  result: Result,
  type: Type,
): Extract<Result, { readonly type: Type }> {
  assert(result.type === type, `a ${type} result was expected, not ${result.type}`);
  return result as Extract<Result, { readonly type: Type }>;
}
