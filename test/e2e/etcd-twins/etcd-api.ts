/** `etcdserverpb.KV` of one server, with answers in a form that can be compared with those of another one. */

import { credentials, type ServiceError } from '@grpc/grpc-js';
import {
  CompactionRequest,
  DeleteRangeRequest,
  type DeleteRangeResponse,
  type KeyValue,
  PutRequest,
  type PutResponse,
  RangeRequest,
  type RangeResponse,
  type ResponseHeader,
  type ResponseOp,
  TxnRequest,
  type TxnResponse,
} from '@remora/protocol/etcd';
import { KVClient } from '@remora/protocol/grpc-clients';
import { changed } from '../../support/etcd-changes.ts';

interface Pair {
  readonly key: string;
  readonly value: string;
  readonly createRevision: number;
  readonly modRevision: number;
  readonly version: number;
}

export interface Found {
  readonly kvs: readonly Pair[];
  readonly more: boolean;
  readonly count: number;
}

/**
 * What a method answers, or how it fails. Revisions of what changed nothing are left out: they may be any later ones.
 */
export type Told<T> = T | { readonly error: string };

type Asked<T extends { fromPartial(object: never): unknown }> = Parameters<T['fromPartial']>[0];

export class EtcdApi {
  readonly #client: KVClient;

  constructor(endpoint: string) {
    this.#client = new KVClient(endpoint, credentials.createInsecure());
  }

  range(request: Asked<typeof RangeRequest>): Promise<Told<Found>> {
    return this.#ask(
      (done) => this.#client.range(RangeRequest.fromPartial(request), done),
      (answer: RangeResponse) => {
        const newest = Math.max(0, ...answer.kvs.map(({ modRevision }) => modRevision));
        const { revision = 0 } = answer.header ?? {};
        return revision >= newest ? found(answer) : { error: `shows ${newest} at revision ${revision}` };
      },
    );
  }

  put(request: Asked<typeof PutRequest>): Promise<Told<object>> {
    return this.#ask(
      (done) => this.#client.put(PutRequest.fromPartial(request), done),
      ({ header, prevKv }: PutResponse) => ({ revision: revisionOf(header), prev: prevKv && pair(prevKv) }),
    );
  }

  delete(request: Asked<typeof DeleteRangeRequest>): Promise<Told<object>> {
    return this.#ask(
      (done) => this.#client.deleteRange(DeleteRangeRequest.fromPartial(request), done),
      ({ header, deleted, prevKvs }: DeleteRangeResponse) => ({
        ...{ deleted, prev: prevKvs.map(pair) },
        ...(Number(deleted) > 0 && { revision: revisionOf(header) }),
      }),
    );
  }

  txn(request: Asked<typeof TxnRequest>): Promise<Told<object>> {
    return this.#ask(
      (done) => this.#client.txn(TxnRequest.fromPartial(request), done),
      ({ header, succeeded, responses }: TxnResponse) => ({
        succeeded,
        responses: responses.map(part),
        ...(responses.some(changed) && { revision: revisionOf(header) }),
      }),
    );
  }

  compact(revision: number): Promise<Told<object>> {
    return this.#ask(
      (done) => this.#client.compact(CompactionRequest.fromPartial({ revision: BigInt(revision) }), done),
      () => ({}),
    );
  }

  close(): void {
    this.#client.close();
  }

  #ask<Answer, T>(
    send: (done: (error: ServiceError | null, answer: Answer) => void) => unknown,
    read: (answer: Answer) => Told<T>,
  ): Promise<Told<T>> {
    return new Promise((resolve) => {
      send((error, answer) => resolve(error === null ? read(answer) : { error: `${error.code} ${error.details}` }));
    });
  }
}

function found({ kvs, more, count }: RangeResponse): Found {
  return { kvs: kvs.map(pair), more, count: Number(count) };
}

function pair({ key, value, createRevision, modRevision, version }: KeyValue): Pair {
  return { key: key.toString(), value: value.toString(), createRevision, modRevision, version: Number(version) };
}

function revisionOf(header: ResponseHeader | undefined): number {
  return header?.revision ?? 0;
}

function part({ response }: ResponseOp): object {
  switch (response?.$case) {
    case 'responseRange':
      return { range: found(response.value) };
    case 'responsePut':
      return { put: response.value.prevKv && pair(response.value.prevKv) };
    case 'responseDeleteRange':
      return { deleted: Number(response.value.deleted), prev: response.value.prevKvs.map(pair) };
    case 'responseTxn':
      return { txn: response.value.succeeded, responses: response.value.responses.map(part) };
    default:
      return {};
  }
}
