import { formatAddress, type Logger } from '@remora/base';
import type { ClusterNode } from '@remora/gateway';
import type { ClusterView } from '@remora/protocol';
import type { NodeOptions } from '../node-options.ts';
import type { Founders } from './cluster-identity.ts';
import { clusterNodes, knownNodesOf } from './known-nodes.ts';
import type { KnownNode, NodePlatform } from './platform.ts';

export interface KnownClusterDeps {
  readonly options: Pick<NodeOptions, 'peerProxies'>;
  readonly founders: Founders | undefined;
  readonly records: Pick<NodePlatform['records'], 'knownNodes' | 'rememberNodes'>;
  readonly logger: Logger;
}

/** What a node knows of its cluster: as the masters told last, else as was written down, else by whom it was founded. */
export class KnownCluster {
  readonly #deps: KnownClusterDeps;
  #view: ClusterView | undefined;

  constructor(deps: KnownClusterDeps) {
    this.#deps = deps;
  }

  /** As the masters told last; undefined until they have. */
  get view(): ClusterView | undefined {
    return this.#view;
  }

  get nodes(): readonly ClusterNode[] {
    const { records, founders } = this.#deps;
    return clusterNodes({ view: this.#view, records: records.knownNodes, founders });
  }

  /** The ids of those who may know a master, or be one, before any master was heard. */
  get firstIds(): readonly number[] {
    const { records, founders } = this.#deps;
    const members = founders?.members.map((_member, i) => i + 1) ?? [];
    return [...new Set([...members, ...records.knownNodes.map(({ nodeId }) => nodeId)])];
  }

  /** Whether the masters have ever told of a cluster with that node: it is written down with what they told. */
  hasTaken(nodeId: number): boolean {
    if (this.#view !== undefined) return true; // They tell none that they do not have.
    return this.#deps.records.knownNodes.some((node) => node.nodeId === nodeId);
  }

  /** Where the peer port of a node is reached, as known now. */
  address(nodeId: number): string | undefined {
    const { founders, options, records } = this.#deps;
    const isIt = (node: KnownNode): boolean => node.nodeId === nodeId;
    const known = this.#view?.nodes.map(({ descriptor }) => descriptor).find(isIt) ?? records.knownNodes.find(isIt);
    const founder = founders?.members[nodeId - 1];
    const name = known?.name ?? founder?.name;
    const proxy = options.peerProxies.find((member) => member.name === name);
    if (proxy !== undefined) return formatAddress(proxy.peer);
    return known?.peerAddress ?? (founder === undefined ? undefined : formatAddress(founder.peer));
  }

  /** The masters say so. KN2: a disk that does not take it has worse to tell, elsewhere. */
  learn(view: ClusterView): void {
    this.#view = view;
    const { records, logger } = this.#deps;
    records.rememberNodes(knownNodesOf(view.nodes)).catch((error: unknown) => {
      logger.warn({ error: String(error) }, 'could not write down where the nodes of the cluster are');
    });
  }
}
