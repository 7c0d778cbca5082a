import { ServiceError } from '@remora/base';
import type { PublicNode } from '@remora/protocol';
import type * as pb from '@remora/protocol/etcd';
import type { Backend } from '../backend.ts';
import type { CallDone, CallInfo } from '../calls.ts';
import { ANY_USER, root } from './etcd-needs.ts';
import type { Headers } from './headers.ts';
import { unsupported } from './unsupported.ts';

/**
 * `etcdserverpb.Cluster`: members are Remora's nodes.
 *
 * CL1. Nodes join and leave by commands of their own, so all changes are refused. A request that etcd would refuse gets
 *      etcd's error; otherwise the refusal names the command.
 */
export class EtcdCluster {
  readonly #backend: Backend;
  readonly #headers: Headers;
  readonly #scheme: 'http' | 'https';

  constructor(backend: Backend, headers: Headers, scheme: 'http' | 'https') {
    this.#backend = backend;
    this.#headers = headers;
    this.#scheme = scheme;
  }

  memberList(
    _request: pb.MemberListRequest,
    { seen, principal }: CallInfo,
    done: CallDone<pb.MemberListResponse>,
  ): undefined {
    this.#backend.check(principal, ANY_USER);
    const members = this.#nodes().map((node) => ({
      ID: node.nodeId,
      name: node.name,
      peerURLs: this.#urls(node.peerAddress),
      clientURLs: this.#urls(node.clientAddress),
      isLearner: false,
    }));
    done(undefined, { header: this.#headers.latest(seen), members });
  }

  memberAdd({ peerURLs }: pb.MemberAddRequest, { principal }: CallInfo): never {
    this.#backend.check(principal, root('add members'));
    const addresses = peerURLs.map(toAddress);
    const known = this.#nodes().find(({ peerAddress }) => addresses.includes(peerAddress));
    if (known !== undefined) {
      throw refusedAs('peerUrlExists', `node ${known.name} has the peer address ${known.peerAddress}`);
    }
    throw unsupported('MemberAdd', 'start the new node with `remora node --join`; it adds itself');
  }

  memberRemove({ ID }: pb.MemberRemoveRequest, { principal }: CallInfo): never {
    this.#backend.check(principal, root('remove members'));
    const { name } = this.#member(ID);
    const commands = `\`remora admin nodes decommission ${name}\`, stop it, then \`remora admin nodes remove ${name}\``;
    throw unsupported('MemberRemove', `run ${commands}`);
  }

  memberUpdate({ ID, peerURLs }: pb.MemberUpdateRequest, { principal }: CallInfo): never {
    this.#backend.check(principal, root('update members'));
    for (const url of peerURLs) toAddress(url);
    const { name } = this.#member(ID);
    throw unsupported('MemberUpdate', `restart node ${name} with --advertise-peer; it announces its address`);
  }

  /** No node is a learner: learners are replicas of single ranges, and become voters by themselves. */
  memberPromote({ ID }: pb.MemberPromoteRequest, { principal }: CallInfo): never {
    this.#backend.check(principal, root('promote members'));
    const { name } = this.#member(ID);
    throw refusedAs('memberNotLearner', `node ${name} is no learner; replicas of ranges become voters by themselves`);
  }

  #nodes(): readonly PublicNode[] {
    const { nodes } = this.#backend.view();
    return nodes.filter(({ state }) => state !== 'removed').map(({ descriptor }) => descriptor);
  }

  #member(id: bigint): PublicNode {
    const member = this.#nodes().find(({ nodeId }) => BigInt(nodeId) === id);
    if (member === undefined) throw refusedAs('memberNotFound', `there is no member ${id}`);
    return member;
  }

  #urls(address: string): string[] {
    return address === '' ? [] : [`${this.#scheme}://${address}`];
  }
}

/** The address of a peer URL, as nodes announce it. */
function toAddress(url: string): string {
  const [, address] = /^https?:\/\/([^/?#\s]+:\d+)\/?$/.exec(url) ?? [];
  if (address === undefined) {
    throw refusedAs('badMemberUrls', `${JSON.stringify(url.slice(0, 200))} is not a peer URL; send http://host:port`);
  }
  return address;
}

function refusedAs(etcd: string, message: string): ServiceError {
  return new ServiceError('INVALID_ARGUMENT', message, { details: { etcd } });
}
