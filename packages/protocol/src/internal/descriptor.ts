import type { Bytes, Span } from '@remora/base';

/** First byte of every routed key: which key space it is in (design §6). */
export const LEASE_SPACE = 0x01;
export const LOCK_SPACE = 0x02;
export const KV_SPACE = 0x03;

/** `confVersion` grows with membership, `version` with split and merge. */
export interface Epoch {
  readonly confVersion: number;
  readonly version: number;
}

/** The epoch of a range that was created anew: a higher `confVersion` means that its membership has changed since. */
export const FIRST_EPOCH: Epoch = Object.freeze({ confVersion: 1, version: 1 });

export interface ReplicaDescriptor {
  readonly replicaId: number;
  readonly nodeId: number;
  readonly type: 'voter' | 'learner';
}

export interface RangeDescriptor extends Span {
  readonly rangeId: number;
  readonly epoch: Epoch;
  readonly replicas: readonly ReplicaDescriptor[];
  /** Who numbers changes: the range itself while it is the only one, the master after the first split (design §8). */
  readonly revisionSource: 'range' | 'master';
}

export type NodeRole = 'master' | 'data' | 'gateway';

export interface NodeDescriptor {
  readonly nodeId: number;
  readonly name: string;
  /**
   * Made with the data directory; a node that lost its data comes back with another one and is refused. Only the masters
   * and the nodes that they have named know it.
   */
  readonly incarnation: string;
  readonly roles: readonly NodeRole[];
  readonly peerAddress: string;
  readonly clientAddress: string;
  readonly httpAddress: string;
  readonly version: string;
}

/** Whether both say the same of a node. */
export function sameNodeDescriptor(a: NodeDescriptor, b: NodeDescriptor): boolean {
  // The record does not compile without each of the fields.
  const same: Readonly<Record<keyof NodeDescriptor, boolean>> = {
    nodeId: a.nodeId === b.nodeId,
    name: a.name === b.name,
    incarnation: a.incarnation === b.incarnation,
    roles: a.roles.length === b.roles.length && a.roles.every((role, i) => role === b.roles[i]),
    peerAddress: a.peerAddress === b.peerAddress,
    clientAddress: a.clientAddress === b.clientAddress,
    httpAddress: a.httpAddress === b.httpAddress,
    version: a.version === b.version,
  };
  return Object.values(same).every((field) => field);
}

/**
 * A node as anyone may see it. The incarnation is a credential between nodes (rpc/node/socket-rpc.ts G3): views, which
 * gateways show to clients and masters to joiners, do not contain it.
 */
export type PublicNode = Omit<NodeDescriptor, 'incarnation'>;

export function publicNode({ incarnation: _, ...node }: NodeDescriptor): PublicNode {
  return node;
}

/**
 * How a node is: whether its heartbeats come, or, of one that is heard, that it takes nothing new. What its operators want
 * of it is another thing (`NodeDuty`).
 */
export type NodeState = 'up' | 'suspect' | 'down' | 'draining' | 'removed';

/** The key by which a plain key is routed and stored. */
export function kvRoutingKey(key: Bytes): Buffer {
  return Buffer.concat([Buffer.from([KV_SPACE]), key]);
}
