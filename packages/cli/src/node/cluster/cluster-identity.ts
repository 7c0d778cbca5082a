import { createHash } from 'node:crypto';
import { formatAddress } from '@remora/base';
import type { Member } from '../../node-option-types.ts';
import { advertised, type NodeOptions } from '../../node-options.ts';

/** What the founding members of a cluster know without asking another node. */
export interface Founders {
  readonly clusterId: string;
  /** In the order of their ids, which count from 1. */
  readonly members: readonly Member[];
  readonly ownNodeId: number;
}

/**
 * The id by which clients and operators know the cluster: in views, backups, etcd's headers and messages among
 * gateways. A one-way function, because nodes present the id itself to each other (decision 75).
 */
export function shownClusterId(clusterId: string): string {
  return createHash('sha256').update(`shown\n${clusterId}`).digest('hex').slice(0, 16);
}

/**
 * The founders from the options; undefined for a node that joins a running cluster. The cluster's id is a hash of token
 * and members, so all founders compute the same id, and nodes of two clusters refuse each other.
 */
export function foundersOf(options: NodeOptions): Founders | undefined {
  if (options.join.length > 0) return undefined;
  const members =
    options.initialCluster.length > 0
      ? [...options.initialCluster]
      : [{ name: options.name, peer: advertised(options).peer }];
  members.sort((a, b) => (a.name < b.name ? -1 : 1));
  const text = [options.clusterToken, ...members.map(({ name, peer }) => `${name}=${formatAddress(peer)}`)].join('\n');
  return {
    clusterId: createHash('sha256').update(text).digest('hex').slice(0, 16),
    members,
    ownNodeId: members.findIndex(({ name }) => name === options.name) + 1,
  };
}
