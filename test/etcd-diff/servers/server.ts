/** One server behind etcd's API: the same client code for both. */
import {
  LeaseLeasesRequest,
  type LeaseTimeToLiveResponse,
  type TxnRequest,
  type WatchRequest,
  type WatchResponse,
} from '@remora/protocol/etcd';
import { changed } from '../../support/etcd-changes.ts';
import {
  type Answer,
  changedHeader,
  deleteAnswer,
  headerOf,
  type LeaseName,
  putAnswer,
  Remaining,
  rangeAnswer,
  textOf,
  txnAnswer,
} from '../judge/answers.ts';
import type { Comparison, GrantStep, LeaseStep, TxnStep, UnaryStep } from '../requests/requests.ts';
import { call, firstOf, onEnd } from './calls.ts';
import { type Clients, clientsOf } from './clients.ts';
import {
  compactRequest,
  deleteRequest,
  grantRequest,
  keepAliveRequest,
  type Numbers,
  putRequest,
  rangeRequest,
  revokeRequest,
  timeToLiveRequest,
  txnRequest,
} from './encode.ts';

/** What one server calls what steps name, and back. */
export interface Names extends Numbers {
  readonly nameOf: LeaseName;
  /** The lease of the step was granted under this id. */
  granted(step: GrantStep, id: bigint): void;
}

/** What comes on a stream of watches, and how it ends. */
export interface WatchSink {
  message(message: WatchResponse): void;
  ended(error: string | undefined): void;
}

export interface WatchRequests {
  write(request: WatchRequest): void;
  /** Half-closes the stream, as clients do. */
  close(): void;
}

/** Holds for no key: versions are not negative. */
const NEVER: Comparison = { key: 'never', result: 2, target: 0, with: { version: 0n } };

export class Server {
  readonly #clients: Clients;

  constructor(endpoint: string) {
    this.#clients = clientsOf(endpoint);
  }

  /** Never rejects: how a call fails is an answer. */
  ask(step: UnaryStep, names: Names): Promise<Answer> {
    const { kv } = this.#clients;
    const { nameOf } = names;
    switch (step.do) {
      case 'range':
        return call(kv.range.bind(kv), rangeRequest(step, names), (reply) => ({
          header: headerOf(reply.header),
          range: rangeAnswer(reply, nameOf),
        }));
      case 'put':
        return call(kv.put.bind(kv), putRequest(step, names), (reply) => ({
          header: changedHeader(reply.header),
          put: putAnswer(reply, nameOf),
        }));
      case 'delete':
        return call(kv.deleteRange.bind(kv), deleteRequest(step), (reply) => ({
          header: reply.deleted > 0 ? changedHeader(reply.header) : headerOf(reply.header),
          delete: deleteAnswer(reply, nameOf),
        }));
      case 'txn':
        return this.#txn(txnRequest(step, names), names);
      case 'compact':
        return call(kv.compact.bind(kv), compactRequest(step, names), ({ header }) => ({ header: headerOf(header) }));
      default:
        return this.#askLease(step, names);
    }
  }

  /** Whether the server would take the transaction: it is sent as the branch that does not run of another one. */
  check(step: TxnStep, names: Names): Promise<Answer> {
    const outer: TxnStep = { do: 'txn', compare: [NEVER], success: [step], failure: [] };
    return this.#txn(txnRequest(outer, names), names);
  }

  watch(sink: WatchSink): WatchRequests {
    const stream = this.#clients.watch.watch();
    stream.on('data', (message: WatchResponse) => sink.message(message));
    onEnd(stream, (error) => sink.ended(error));
    return { write: (request) => void stream.write(request), close: () => stream.end() };
  }

  close(): void {
    for (const client of Object.values(this.#clients)) client.close();
  }

  #txn(request: TxnRequest, { nameOf }: Names): Promise<Answer> {
    const { kv } = this.#clients;
    return call(kv.txn.bind(kv), request, (reply) => ({
      header: reply.responses.some(changed) ? changedHeader(reply.header) : headerOf(reply.header),
      txn: txnAnswer(reply, nameOf),
    }));
  }

  #askLease(
    step: Exclude<UnaryStep, { do: 'range' | 'put' | 'delete' | 'txn' | 'compact' }>,
    names: Names,
  ): Promise<Answer> {
    const { lease } = this.#clients;
    switch (step.do) {
      case 'grant':
        return call(lease.leaseGrant.bind(lease), grantRequest(step, names), ({ header, ID, TTL, error }) => {
          names.granted(step, ID);
          return { header: headerOf(header), id: names.nameOf(ID), ttl: TTL, text: error };
        });
      case 'revoke':
        return call(lease.leaseRevoke.bind(lease), revokeRequest(step, names), ({ header }) => ({
          header: headerOf(header),
        }));
      case 'timeToLive':
        return call(lease.leaseTimeToLive.bind(lease), timeToLiveRequest(step, names), (reply) =>
          timeToLiveAnswer(reply, names.nameOf),
        );
      case 'leases':
        return call(lease.leaseLeases.bind(lease), LeaseLeasesRequest.create(), ({ header, leases }) => ({
          header: headerOf(header),
          // In no order that a client could count on: etcd has them by what is left of them.
          leases: leases.map(({ ID }) => names.nameOf(ID)).sort(),
        }));
      case 'keepAlive':
        return this.#keepAlive(step, names);
    }
  }

  async #keepAlive(step: LeaseStep, names: Names): Promise<Answer> {
    const stream = this.#clients.lease.leaseKeepAlive();
    const answer = firstOf(stream, ({ header, ID, TTL }) => ({
      header: headerOf(header),
      id: names.nameOf(ID),
      ttl: TTL,
    }));
    stream.write(keepAliveRequest(step, names));
    const told = await answer;
    stream.end();
    return told;
  }
}

function timeToLiveAnswer({ header, ID, TTL, grantedTTL, keys }: LeaseTimeToLiveResponse, nameOf: LeaseName): Answer {
  return {
    header: headerOf(header),
    id: nameOf(ID),
    remaining: TTL > 0 ? new Remaining(TTL) : TTL,
    granted: grantedTTL,
    // etcd has them in no order.
    keys: keys.map(textOf).sort(),
  };
}
