import { formatAddress, type Logger } from '@remora/base';
import type { ClusterNode } from '@remora/gateway';
import type { ClusterView, NodeHeartbeatReply, RegisteredNode } from '@remora/protocol';
import type { NodeOptions } from '../../node-options.ts';
import type { NodeRecords } from '../node-records.ts';
import type { Founders } from './cluster-identity.ts';
import { clusterNodes, knownNodesOf } from './known-nodes.ts';
import type { NamedPeer } from './peer-identities.ts';

export interface KnownClusterDeps {
  readonly options: Pick<NodeOptions, 'peerProxies'>;
  readonly founders: Founders | undefined;
  readonly records: Pick<NodeRecords, 'knownNodes' | 'rememberNodes'>;
  readonly logger: Logger;
  /** What the master on this node knows about a node, if this node runs one. */
  readonly masterKnows: (nodeId: number) => NamedPeer | undefined;
}

/** A node's knowledge of its cluster: from the masters' last answer, else from disk, else from the founders. */
export class KnownCluster {
  readonly #deps: KnownClusterDeps;
  #view: ClusterView | undefined;
  /** Why the last write of the nodes failed. Each answer of the masters retries it, and a change is logged. */
  #writeError = '';

  constructor(deps: KnownClusterDeps) {
    this.#deps = deps;
  }

  /** The masters' last view; undefined before the first. */
  get view(): ClusterView | undefined {
    return this.#view;
  }

  get nodes(): readonly ClusterNode[] {
    const { records, founders } = this.#deps;
    return clusterNodes({ view: this.#view, records: records.knownNodes, founders });
  }

  /** The ids of nodes that may know a master, or be one, before any master was heard. */
  get firstIds(): readonly number[] {
    const { records, founders } = this.#deps;
    const members = founders?.members.map((_member, i) => i + 1) ?? [];
    const known = records.knownNodes.filter(({ removed }) => !removed).map(({ nodeId }) => nodeId);
    return [...new Set([...members, ...known])];
  }

  /** Whether the masters have ever reported a cluster with that node: the report is on disk. */
  hasTaken(nodeId: number): boolean {
    if (this.#view !== undefined) return true; // The masters report only nodes that they have.
    return this.#deps.records.knownNodes.some((node) => node.nodeId === nodeId);
  }

  /** The masters' last report about a node. */
  named(nodeId: number): NamedPeer | undefined {
    const { masterKnows, records } = this.#deps;
    return masterKnows(nodeId) ?? records.knownNodes.find((node) => node.nodeId === nodeId);
  }

  isFounder(nodeId: number): boolean {
    return this.#deps.founders?.members[nodeId - 1] !== undefined;
  }

  /** The current address of a node's peer port. */
  address(nodeId: number): string | undefined {
    const known = this.registered(nodeId);
    const proxy = this.#deps.options.peerProxies.find((member) => member.name === known?.name);
    return proxy === undefined ? known?.peerAddress : formatAddress(proxy.peer);
  }

  /** The name and address of a node: from the masters, else from the founders. */
  registered(nodeId: number): RegisteredNode | undefined {
    const { founders, records } = this.#deps;
    const known =
      this.#view?.nodes.find(({ descriptor }) => descriptor.nodeId === nodeId)?.descriptor ??
      records.knownNodes.find((node) => node.nodeId === nodeId);
    if (known !== undefined) return known;
    const founder = founders?.members[nodeId - 1];
    return founder && { name: founder.name, peerAddress: formatAddress(founder.peer) };
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
