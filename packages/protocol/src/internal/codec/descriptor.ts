import type { Epoch, NodeDescriptor, PublicNode, RangeDescriptor, ReplicaDescriptor } from '../descriptor.ts';
import { asBytes, asCount, asFields, asList, asText, invalid, wireWords } from './check.ts';

const REPLICA_TYPES = wireWords('replica type', ['voter', 'learner']);
const REVISION_SOURCES = wireWords('revision source', ['range', 'master']);
const ROLES = ['master', 'data', 'gateway'] as const;
const NODE_ROLES = wireWords('node role', ROLES);
export const NODE_STATES = wireWords('node state', ['up', 'suspect', 'down', 'draining', 'removed']);

export function encodeEpoch(epoch: Epoch): unknown[] {
  return [epoch.confVersion, epoch.version];
}

export function decodeEpoch(raw: unknown): Epoch {
  const f = asFields(raw, 2, 'epoch');
  return { confVersion: asCount(f[0], 'epoch.confVersion'), version: asCount(f[1], 'epoch.version') };
}

export function encodeReplica(replica: ReplicaDescriptor): unknown[] {
  return [replica.replicaId, replica.nodeId, REPLICA_TYPES.encode(replica.type)];
}

export function decodeReplica(raw: unknown): ReplicaDescriptor {
  const f = asFields(raw, 3, 'replica');
  return {
    replicaId: asCount(f[0], 'replica.replicaId'),
    nodeId: asCount(f[1], 'replica.nodeId'),
    type: REPLICA_TYPES.decode(f[2]),
  };
}

export function encodeRangeDescriptor(range: RangeDescriptor): unknown[] {
  return [
    range.rangeId,
    range.start,
    range.end,
    range.epoch.confVersion,
    range.epoch.version,
    range.replicas.map(encodeReplica),
    REVISION_SOURCES.encode(range.revisionSource),
  ];
}

export function decodeRangeDescriptor(raw: unknown): RangeDescriptor {
  const f = asFields(raw, 7, 'range descriptor');
  return {
    rangeId: asCount(f[0], 'range.rangeId'),
    start: asBytes(f[1], 'range.start'),
    end: asBytes(f[2], 'range.end'),
    epoch: { confVersion: asCount(f[3], 'epoch.confVersion'), version: asCount(f[4], 'epoch.version') },
    replicas: asList(f[5], 'range.replicas', decodeReplica),
    revisionSource: REVISION_SOURCES.decode(f[6]),
  };
}

type NodeSelf = Omit<NodeDescriptor, 'nodeId'>;

/** A node's description without its id: what a node that joins knows about itself. */
export function encodeNodeSelf(node: NodeSelf): unknown[] {
  return [
    node.name,
    node.incarnation,
    node.roles.map((role) => NODE_ROLES.encode(role)),
    node.peerAddress,
    node.clientAddress,
    node.httpAddress,
    node.version,
  ];
}

export function decodeNodeSelf(raw: unknown): NodeSelf {
  const f = asFields(raw, 7, 'node');
  return {
    name: asText(f[0], 'node.name'),
    incarnation: asText(f[1], 'node.incarnation'),
    ...decodeShown(f),
  };
}

/** The fields from the third on, which a node and what is shown of it have alike. */
function decodeShown(f: readonly unknown[]): Omit<NodeSelf, 'name' | 'incarnation'> {
  return {
    roles: asList(f[2], 'node.roles', NODE_ROLES.decode),
    peerAddress: asText(f[3], 'node.peerAddress'),
    clientAddress: asText(f[4], 'node.clientAddress'),
    httpAddress: asText(f[5], 'node.httpAddress'),
    version: asText(f[6], 'node.version'),
  };
}

/** As the options of a node demand of its name (cli/src/node-options.ts). */
const NAME_PATTERN = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;
const NAME_LENGTH_MAX = 64;
const INCARNATION_LENGTH_MAX = 64;
const VERSION_LENGTH_MAX = 64;
/** A host name has 253 characters at most; brackets, colon and port come on top. */
const ADDRESS_LENGTH_MAX = 300;

/**
 * What a caller says about itself when it joins. Anyone who reaches the port may join, and the masters keep what they
 * take and put most of it into every view, so its size is bounded. Only here: what is stored was taken once, and must
 * remain readable.
 */
export function decodeJoiningSelf(raw: unknown): NodeSelf {
  const [, , roles] = asFields(raw, 7, 'node');
  // Before the list is decoded: it may have any length.
  if (!Array.isArray(roles) || roles.length > ROLES.length) throw invalid('node.roles');
  const node = decodeNodeSelf(raw);
  if (new Set(node.roles).size !== node.roles.length) throw invalid('node.roles: one is there twice');
  if (!NAME_PATTERN.test(node.name)) throw invalid('node.name: letters, digits, dots, dashes and underscores');
  checkLength(node.name, NAME_LENGTH_MAX, 'node.name');
  checkLength(node.incarnation, INCARNATION_LENGTH_MAX, 'node.incarnation');
  checkLength(node.peerAddress, ADDRESS_LENGTH_MAX, 'node.peerAddress');
  checkLength(node.clientAddress, ADDRESS_LENGTH_MAX, 'node.clientAddress');
  checkLength(node.httpAddress, ADDRESS_LENGTH_MAX, 'node.httpAddress');
  checkLength(node.version, VERSION_LENGTH_MAX, 'node.version');
  return node;
}

function checkLength(text: string, max: number, what: string): void {
  if (text.length > max) throw invalid(`${what} has ${text.length} characters; the limit is ${max}`);
}

export function encodeNodeDescriptor(node: NodeDescriptor): unknown[] {
  return [node.nodeId, encodeNodeSelf(node)];
}

export function decodeNodeDescriptor(raw: unknown): NodeDescriptor {
  const f = asFields(raw, 2, 'node descriptor');
  return { nodeId: asCount(f[0], 'node.nodeId'), ...decodeNodeSelf(f[1]) };
}

export function encodePublicNode({ nodeId, name, roles, ...node }: PublicNode): unknown[] {
  const { peerAddress, clientAddress, httpAddress, version } = node;
  return [nodeId, name, roles.map((role) => NODE_ROLES.encode(role)), peerAddress, clientAddress, httpAddress, version];
}

export function decodePublicNode(raw: unknown): PublicNode {
  const f = asFields(raw, 7, 'node');
  return {
    nodeId: asCount(f[0], 'node.nodeId'),
    name: asText(f[1], 'node.name'),
    ...decodeShown(f),
  };
}
