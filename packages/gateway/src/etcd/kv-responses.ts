import { asBuffer, assert, unreachable } from '@remora/base';
import type { DeleteResult, KeyValue, KvEvent, KvResult, PutResult, RangeResult, TxnResult } from '@remora/protocol';
import type * as pb from '@remora/protocol/etcd';

/** Turns typed results into etcd's messages. Bytes are shared, not copied, as messages are encoded immediately. */
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

/**
 * The header of each part has the revision of the state that it returns: parts before the first change return the state
 * before the transaction. A nested transaction has no revision (etcd `newTxnResp`).
 */
export function fromTxn(result: TxnResult, header: pb.ResponseHeader): pb.TxnResponse {
  const now = { revision: changesAnything(result) ? header.revision - 1 : header.revision };
  return { header, succeeded: result.succeeded, responses: fromParts(result.results, now, header.revision) };
}

/** `now`: the revision after the parts before. `after`: the revision of the whole transaction. */
function fromParts(results: readonly KvResult[], now: { revision: number }, after: number): pb.ResponseOp[] {
  return results.map((result) => {
    if (result.type === 'txn') {
      const responses = fromParts(result.results, now, after);
      const value = { header: innerHeader(0), succeeded: result.succeeded, responses };
      return { response: { $case: 'responseTxn', value } };
    }
    if (changesAnything(result)) now.revision = after;
    return { response: fromResult(result, innerHeader(now.revision)) };
  });
}

function changesAnything(result: KvResult): boolean {
  switch (result.type) {
    case 'range':
      return false;
    case 'put':
      return true;
    case 'delete':
      return result.deleted > 0;
    case 'txn':
      return result.results.some(changesAnything);
  }
}

/** Headers of parts have only the revision. */
function innerHeader(revision: number): pb.ResponseHeader {
  return { clusterId: 0n, memberId: 0, revision, raftTerm: 0 };
}

export function fromEvent(event: KvEvent): pb.Event {
  return {
    type: event.type === 'put' ? 0 : 1,
    kv: event.type === 'put' ? fromKeyValue(event.kv) : tombstone(event.kv),
    prevKv: event.prev === undefined ? undefined : fromKeyValue(event.prev),
  };
}

/** About the bytes that an event takes in a message. */
export function eventBytes(event: KvEvent): number {
  const { kv, prev } = event;
  const own = kv.key.length + kv.value.length + 32;
  return prev === undefined ? own : own + prev.key.length + prev.value.length + 32;
}

function fromResult(result: Exclude<KvResult, TxnResult>, header: pb.ResponseHeader): pb.ResponseOp['response'] {
  switch (result.type) {
    case 'range':
      return { $case: 'responseRange', value: fromRange(result, header) };
    case 'put':
      return { $case: 'responsePut', value: fromPut(result, header) };
    case 'delete':
      return { $case: 'responseDeleteRange', value: fromDelete(result, header) };
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

/** A backend returns a result of the requested type; any other is a broken invariant. */
export function expectType<Result extends { readonly type: string }, Type extends Result['type']>(
  result: Result,
  type: Type,
): Extract<Result, { readonly type: Type }> {
  assert(result.type === type, `a ${type} result was expected, not ${result.type}`);
  return result as Extract<Result, { readonly type: Type }>;
}
