import type { Bytes } from '@remora/base';
import { bytes, distinctList, field, flat, list, spread, struct, text, textOf, uint, words } from '../schema/kinds.ts';
import type { Infer } from '../schema/shape.ts';

/** First byte of every routed key: which key space it is in (design §6). */
export const LEASE_SPACE = 0x01;
export const LOCK_SPACE = 0x02;
export const KV_SPACE = 0x03;

export const Epoch = struct('epoch', {
  confVersion: field(uint, 'Grows when the membership of the range changes.'),
  version: field(uint, 'Grows when the range is split or merged.'),
});
export interface Epoch extends Infer<typeof Epoch> {}

/** The epoch of a new range: a higher `confVersion` means that its membership has changed since. */
export const FIRST_EPOCH: Epoch = Object.freeze({ confVersion: 1, version: 1 });

export const ReplicaDescriptor = struct('replica', {
  replicaId: field(uint, 'The id of the replica, never reused in the cluster.'),
  nodeId: field(uint, 'The node that holds it.'),
  type: field(words('replica type', ['voter', 'learner']), 'Whether it votes.'),
});
export interface ReplicaDescriptor extends Infer<typeof ReplicaDescriptor> {}

export const RangeDescriptor = struct('range descriptor', {
  rangeId: field(uint, 'The id of the range.'),
  start: field(bytes, 'Its first routing key.'),
  end: field(bytes, 'The routing key behind its last one; empty: unbounded.'),
  epoch: flat(Epoch, 'Which version of the range this describes.'),
  replicas: field(list(ReplicaDescriptor), 'Its replicas.'),
  revisionSource: field(
    words('revision source', ['range', 'master']),
    'Who numbers changes: the range itself while it is the only one, the masters after the first split.',
  ),
});
export interface RangeDescriptor extends Infer<typeof RangeDescriptor> {}

const ROLES = ['master', 'data', 'gateway'] as const;
const NodeRoleKind = words('node role', ROLES);
export type NodeRole = Infer<typeof NodeRoleKind>;

const ADDRESSES = {
  peerAddress: field(text, 'Where other nodes connect, `host:port`.'),
  clientAddress: field(text, 'Where clients connect, `host:port`.'),
  httpAddress: field(text, 'Where HTTP is served, `host:port`.'),
  version: field(text, 'The release that the node runs.'),
};

/** A node without its id. */
const NodeSelf = struct('node', {
  name: field(text, 'The name that operators gave it.'),
  incarnation: field(
    text,
    'Made with the data directory. A node that lost its data has another one and is refused. It is a credential: only the masters and the nodes that they named know it.',
  ),
  roles: field(list(NodeRoleKind), 'What the node does.'),
  ...ADDRESSES,
});

export const NodeDescriptor = struct('node descriptor', {
  nodeId: field(uint, 'The id that the masters gave the node.'),
  self: spread(NodeSelf, 'What the node says of itself.'),
});
export interface NodeDescriptor extends Infer<typeof NodeDescriptor> {}

/** The options of a node demand the same of its name (cli/src/node-options.ts). */
const NAME_PATTERN = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;
const SHORT_TEXT = textOf({ max: 64 });
/** A host name has at most 253 characters; brackets, colon and port come on top. */
const ADDRESS = textOf({ max: 300 });

/**
 * What a caller says of itself when it joins. Anyone who reaches the port may join, and the masters keep most of it in
 * every view, so its size is bounded. Stored nodes have no such bounds: they were accepted once and must stay readable.
 */
export const JoiningNode = struct('joining node', {
  name: field(textOf({ max: 64, pattern: NAME_PATTERN }), 'The name that operators gave it.'),
  incarnation: field(SHORT_TEXT, 'Made with the data directory.'),
  roles: field(distinctList(NodeRoleKind, ROLES.length), 'What the node does.'),
  peerAddress: field(ADDRESS, 'Where other nodes connect, `host:port`.'),
  clientAddress: field(ADDRESS, 'Where clients connect, `host:port`.'),
  httpAddress: field(ADDRESS, 'Where HTTP is served, `host:port`.'),
  version: field(SHORT_TEXT, 'The release that the node runs.'),
});

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
export const PublicNode = struct('public node', {
  nodeId: field(uint, 'The id that the masters gave the node.'),
  name: field(text, 'The name that operators gave it.'),
  roles: field(list(NodeRoleKind), 'What the node does.'),
  ...ADDRESSES,
});
export interface PublicNode extends Infer<typeof PublicNode> {}

export function publicNode({ incarnation: _, ...node }: NodeDescriptor): PublicNode {
  return node;
}

/**
 * Whether heartbeats of a node arrive, or that a node whose heartbeats arrive takes nothing new. What its operators
 * want of it is its duty (`NodeDuty`).
 */
export const NodeState = words('node state', ['up', 'suspect', 'down', 'draining', 'removed']);
export type NodeState = Infer<typeof NodeState>;

/** The key by which a plain key is routed and stored. */
export function kvRoutingKey(key: Bytes): Buffer {
  return Buffer.concat([Buffer.from([KV_SPACE]), key]);
}
