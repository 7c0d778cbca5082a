import type * as pb from '@remora/protocol/etcd';
import type { Backend } from '../backend.ts';
import type { CallDone, CallInfo } from '../calls.ts';
import type { Headers } from './headers.ts';

/** `etcdserverpb.Cluster`, read only: members are Remora's nodes. Nodes join by themselves. */
export class EtcdCluster {
  readonly #backend: Backend;
  readonly #headers: Headers;
  readonly #scheme: 'http' | 'https';

  constructor(backend: Backend, headers: Headers, scheme: 'http' | 'https') {
    this.#backend = backend;
    this.#headers = headers;
    this.#scheme = scheme;
  }

  memberList(_request: pb.MemberListRequest, { seen }: CallInfo, done: CallDone<pb.MemberListResponse>): undefined {
    const members = this.#backend
      .view()
      .nodes.filter(({ state }) => state !== 'removed')
      .map(({ descriptor }) => ({
        ID: descriptor.nodeId,
        name: descriptor.name,
        peerURLs: this.#urls(descriptor.peerAddress),
        clientURLs: this.#urls(descriptor.clientAddress),
        isLearner: false,
      }));
    done(undefined, { header: this.#headers.latest(seen), members });
  }

  #urls(address: string): string[] {
    return address === '' ? [] : [`${this.#scheme}://${address}`];
  }
}
