import { formatAddress, type Logger } from '@remora/base';
import type { ClusterNode } from '@remora/gateway';
import type { ClusterView, NodeDescriptor, NodeHeartbeatReply, RegisteredNode } from '@remora/protocol';
import type { Member } from '../../node-option-types.ts';
import type { NodeOptions } from '../../node-options.ts';
import type { NodeRecords } from '../node-records.ts';
import type { Founders } from './cluster-identity.ts';
import { clusterNodes, knownNodesOf } from './known-nodes.ts';
import { PeerAddresses } from './peer-addresses.ts';
import type { NamedPeer } from './peer-identities.ts';

/** Addresses of other nodes by their names. */
export type AddressHints = Pick<NodeOptions, 'peerProxies' | 'initialCluster'>;

export interface KnownClusterDeps {
  readonly options: AddressHints;
  readonly founders: Founders | undefined;
  readonly records: Pick<NodeRecords, 'knownNodes' | 'rememberNodes'>;
  readonly logger: Logger;
  /** What the master on this node knows about a node, if this node runs one. */
  readonly masterKnows: (nodeId: number) => NamedPeer | undefined;
}

/** A node's knowledge of its cluster: from the masters' last answer, else from disk, else from the founders. */
export class KnownCluster {
  readonly #deps: KnownClusterDeps;
  /** Where to dial the nodes. */
  readonly addresses: PeerAddresses;
  #hints: AddressHints;
  #view: ClusterView | undefined;
  /** Why the last write of the nodes failed. Each answer of the masters retries it, and a change is logged. */
  #writeError = '';

  constructor(deps: KnownClusterDeps) {
    this.#deps = deps;
    this.#hints = deps.options;
    this.addresses = new PeerAddresses({
      proxy: (nodeId) => addressIn(this.#hints.peerProxies, this.#nameOf(nodeId)),
      registered: (nodeId) => this.#reported(nodeId)?.peerAddress,
      hinted: (nodeId) => this.hinted(nodeId)?.peerAddress,
    });
  }

  /** Takes addresses from these options from now on. */
  hint(hints: AddressHints): void {
    this.#hints = hints;
  }

  /** The masters' last view; undefined before the first. */
  get view(): ClusterView | undefined {
    return this.#view;
  }

  /** Whether the masters' last view has ranges. */
  get isFounded(): boolean {
    return (this.#view?.ranges.length ?? 0) > 0;
  }

  get nodes(): readonly ClusterNode[] {
    const { records, founders } = this.#deps;
    return clusterNodes({ view: this.#view, records: records.knownNodes, founders });
  }

  /** The ids of nodes that may know a master, or be one, before any master was heard. */
  get firstIds(): readonly number[] {
    const { records, founders } = this.#deps;
    const members = founders?.names.map((_name, i) => i + 1) ?? [];
    const known = records.knownNodes.filter(({ removed }) => !removed).map(({ nodeId }) => nodeId);
    return [...new Set([...members, ...known])];
  }

  /** Whether the masters have ever reported a cluster with that node: the report is on disk. */
  hasTaken(nodeId: number): boolean {
    if (this.#view !== undefined) return true; // The masters report only nodes that they have.
    return this.#deps.records.knownNodes.some((node) => node.nodeId === nodeId);
  }

  /** Whether the masters' report on disk has the node at another address. */
  hasMoved({ nodeId, peerAddress }: Pick<NodeDescriptor, 'nodeId' | 'peerAddress'>): boolean {
    const known = this.#deps.records.knownNodes.find((node) => node.nodeId === nodeId);
    return known !== undefined && known.peerAddress !== peerAddress;
  }

  /** The masters' last report about a node. */
  named(nodeId: number): NamedPeer | undefined {
    const { masterKnows, records } = this.#deps;
    return masterKnows(nodeId) ?? records.knownNodes.find((node) => node.nodeId === nodeId);
  }

  isFounder(nodeId: number): boolean {
    return this.#deps.founders?.names[nodeId - 1] !== undefined;
  }

  /** The name and address of a node: from the masters, else from the options. */
  registered(nodeId: number): RegisteredNode | undefined {
    return this.#reported(nodeId) ?? this.hinted(nodeId);
  }

  /** The name of a node and its address in the options of this one. */
  hinted(nodeId: number): RegisteredNode | undefined {
    const name = this.#nameOf(nodeId);
    const peerAddress = addressIn(this.#hints.initialCluster, name);
    return name === undefined || peerAddress === undefined ? undefined : { name, peerAddress };
  }

  /** The masters' last report. */
  #reported(nodeId: number): RegisteredNode | undefined {
    return (
      this.#view?.nodes.find(({ descriptor }) => descriptor.nodeId === nodeId)?.descriptor ??
      this.#deps.records.knownNodes.find((node) => node.nodeId === nodeId)
    );
  }

  #nameOf(nodeId: number): string | undefined {
    return this.#reported(nodeId)?.name ?? this.#deps.founders?.names[nodeId - 1];
  }

  /**
   * Takes a report of the masters. It is on disk before anything else in the same answer is acted on: replicas rely on
   * the identity of their peers. If the disk refuses it, other parts fail too.
   */
  learn(view: ClusterView, incarnations: NodeHeartbeatReply['incarnations']): void {
    this.#view = view;
    const { records, logger } = this.#deps;
    try {
      records.rememberNodes(knownNodesOf(view.nodes, incarnations));
      this.#writeError = '';
    } catch (cause) {
      const error = String(cause);
      if (error !== this.#writeError) logger.warn({ error }, 'could not store the list of cluster nodes');
      this.#writeError = error;
    }
  }
}

function addressIn(members: readonly Member[], name: string | undefined): string | undefined {
  const member = members.find((each) => each.name === name);
  return member && formatAddress(member.peer);
}
