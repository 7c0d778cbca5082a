import type * as pb from '@remora/protocol/etcd';
import type { Backend } from '../backend.ts';
import type { CallDone, CallInfo, GiveUp } from '../calls.ts';
import { checkSize, opBytes, readsOnly, txnBytes } from '../request-limits.ts';
import type { Headers } from './headers.ts';
import { toCompactRevision, toDeleteOp, toPutOp, toRangeOp, toTxn } from './kv-requests.ts';
import { fromDelete, fromPut, fromRange, fromTxn } from './kv-responses.ts';
import type { EtcdLimits } from './limits.ts';
import { answering } from './replies.ts';

/** `etcdserverpb.KV` over a backend. */
export class EtcdKv {
  readonly #backend: Backend;
  readonly #headers: Headers;
  readonly #limits: EtcdLimits;

  constructor(backend: Backend, headers: Headers, limits: EtcdLimits) {
    this.#backend = backend;
    this.#headers = headers;
    this.#limits = limits;
  }

  range(request: pb.RangeRequest, call: CallInfo, done: CallDone<pb.RangeResponse>): GiveUp {
    const op = toRangeOp(request);
    const { serializable } = request;
    const { timeoutMs, principal, seen, trace } = call;
    const options = serializable ? { timeoutMs, principal, trace, notBefore: seen.newest } : call;
    const query = { type: 'range', op, serializable } as const;
    return this.#backend.query(query, options, answering(this.#headers, done, 'range', fromRange));
  }

  put(request: pb.PutRequest, call: CallInfo, done: CallDone<pb.PutResponse>): GiveUp {
    const op = toPutOp(request);
    checkSize(opBytes(op), this.#limits);
    return this.#backend.command({ type: 'kv', op }, call, answering(this.#headers, done, 'put', fromPut));
  }

  deleteRange(request: pb.DeleteRangeRequest, call: CallInfo, done: CallDone<pb.DeleteRangeResponse>): GiveUp {
    const op = toDeleteOp(request);
    checkSize(opBytes(op), this.#limits);
    return this.#backend.command({ type: 'kv', op }, call, answering(this.#headers, done, 'delete', fromDelete));
  }

  txn(request: pb.TxnRequest, call: CallInfo, done: CallDone<pb.TxnResponse>): GiveUp {
    const txn = toTxn(request, this.#limits);
    checkSize(txnBytes(txn), this.#limits);
    const answer = answering(this.#headers, done, 'txn', fromTxn);
    if (readsOnly(txn)) return this.#backend.query({ type: 'readTxn', txn, serializable: false }, call, answer);
    return this.#backend.command({ type: 'txn', txn }, call, answer);
  }

  compact(request: pb.CompactionRequest, call: CallInfo, done: CallDone<pb.CompactionResponse>): GiveUp {
    const command = { type: 'compact', revision: toCompactRevision(request.revision) } as const;
    return this.#backend.command(
      command,
      call,
      answering(this.#headers, done, 'compact', (_, header) => ({ header })),
    );
  }
}
