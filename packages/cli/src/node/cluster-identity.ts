import { createHash } from 'node:crypto';
import { formatAddress } from '@remora/base';
import { advertised, type Member, type NodeOptions } from '../node-options.ts';

/** What the founding members of a cluster know without asking anybody. */
export interface Founders {
  readonly clusterId: string;
  /** In the order of their ids, which count from 1. */
  readonly members: readonly Member[];
  readonly ownNodeId: number;
}

/**
 * The founders as the options say; undefined for a node that joins a running cluster. The cluster's id is a hash of
 * token and members, so that all founders reckon the same one, and nodes of two clusters refuse each other.
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

/** What gateways of one cluster have in common, for clients. It must not tell the cluster's id: peers are trusted by that. */
export function gatewayCluster(clusterId: string): string {
  return createHash('sha256').update(`gateways of ${clusterId}`).digest('hex').slice(0, 16);
}
