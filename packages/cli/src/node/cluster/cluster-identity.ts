/**
 * Which cluster a node belongs to, and who founded it (docs/decisions/0101-the-cluster-id-is-made-once.md).
 *
 * CI1. Founders form one cluster only if all of them were started with the same token, names and addresses: the id is a
 *      hash of these. So two lists that share a machine never make one cluster, or two clusters with a common member.
 * CI2. The id, the node's own id and the names of the founders are written to an empty data directory before anything
 *      else is done (files/data-dir.ts I6). Every later start reads them there. Addresses, and so
 *      `--initial-cluster`, may change.
 * CI3. Until the masters have named the node, its options must still make the id in its directory: a founder that is
 *      given another list could otherwise belong to two foundings.
 */
import { createHash } from 'node:crypto';
import { formatAddress } from '@remora/base';
import { advertised, type NodeOptions } from '../../node-options.ts';

/** How a node founds a cluster, or did. */
export interface Founders {
  readonly clusterId: string;
  /** The names of the founding members in the order of their ids, which count from 1. */
  readonly names: readonly string[];
  readonly ownNodeId: number;
}

/**
 * The id by which clients and operators know the cluster: in views, backups, etcd's headers and messages among
 * gateways. A one-way function, because nodes present the id itself to each other (decision 75).
 */
export function shownClusterId(clusterId: string): string {
  return createHash('sha256').update(`shown\n${clusterId}`).digest('hex').slice(0, 16);
}

/** How a node with an empty data directory would found a cluster; undefined if it joins one (CI1). */
export function plannedFounding(options: NodeOptions): Founders | undefined {
  if (options.join.length > 0) return undefined;
  const members =
    options.initialCluster.length > 0
      ? [...options.initialCluster]
      : [{ name: options.name, peer: advertised(options).peer }];
  members.sort((a, b) => (a.name < b.name ? -1 : 1));
  const text = [options.clusterToken, ...members.map(({ name, peer }) => `${name}=${formatAddress(peer)}`)].join('\n');
  return {
    clusterId: createHash('sha256').update(text).digest('hex').slice(0, 16),
    names: members.map(({ name }) => name),
    ownNodeId: members.findIndex(({ name }) => name === options.name) + 1,
  };
}

/** The founding that a node took part in, from its data directory (CI2); undefined for a node that joined later. */
export function recordedFounding(identity: {
  readonly clusterId?: string;
  readonly nodeId?: number;
  readonly founders?: readonly string[];
}): Founders | undefined {
  const { clusterId, nodeId, founders } = identity;
  if (clusterId === undefined || nodeId === undefined || founders === undefined) return undefined;
  return { clusterId, names: founders, ownNodeId: nodeId };
}
