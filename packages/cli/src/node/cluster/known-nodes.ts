import type { ClusterNode } from '@remora/gateway';
import type { ClusterView, NodeEntry, NodeHeartbeatReply } from '@remora/protocol';
import type { Founders } from './cluster-identity.ts';
import type { NamedPeer } from './peer-identities.ts';

/** The masters' report about a node. */
export interface KnownNode extends NamedPeer {
  readonly nodeId: number;
  readonly name: string;
  /** `host:port`. */
  readonly peerAddress: string;
}

/**
 * The addresses and incarnations of a cluster's nodes, on the disk of each of them.
 *
 * KN1. A node that restarts while no master can be reached finds its peers by this file: after a power failure, ranges
 *      elect their leaders whether or not the masters have one yet.
 * KN2. The file is only written from the masters' answers. Their next answer replaces it. Without the file the node has
 *      to wait for a master, and until then a refusal ends the node (peer-refusal-policy.ts ST1).
 * KN3. An incarnation belongs to its id for good (master/src/metadata/master-state.ts M2), so an old file is
 *      incomplete, never wrong.
 */
export function knownNodesOf(
  nodes: readonly NodeEntry[],
  incarnations: NodeHeartbeatReply['incarnations'],
): readonly KnownNode[] {
  const byId = new Map(incarnations);
  return nodes
    .map(({ descriptor: { nodeId, name, peerAddress }, state }) => {
      const removed = state === 'removed';
      return { nodeId, name, peerAddress, incarnation: byId.get(nodeId) ?? '', removed };
    })
    .filter(({ incarnation, removed }) => removed || incarnation !== '')
    .sort((a, b) => a.nodeId - b.nodeId);
}

/** The nodes of the cluster: from the masters' answer, else from disk, else the founders. */
export function clusterNodes(given: {
  readonly view: ClusterView | undefined;
  readonly records: readonly KnownNode[];
  readonly founders: Founders | undefined;
}): readonly ClusterNode[] {
  const { view, records, founders } = given;
  if (view !== undefined) {
    return view.nodes.map(({ descriptor: { nodeId, name }, state }) => ({
      nodeId,
      name,
      removed: state === 'removed',
    }));
  }
  if (records.length > 0) return records.map(({ nodeId, name, removed }) => ({ nodeId, name, removed }));
  return (founders?.names ?? []).map((name, i) => ({ nodeId: i + 1, name, removed: false }));
}

export function sameNodes(a: readonly KnownNode[], b: readonly KnownNode[]): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/**
 * The usable contents of a file (KN2). Files of earlier versions lack the incarnations; `incarnationOf` returns those
 * that such a version kept in a separate file.
 */
export function readKnownNodes(value: unknown, incarnationOf: (nodeId: number) => string | undefined): KnownNode[] {
  if (typeof value !== 'object' || value === null || !('nodes' in value) || !Array.isArray(value.nodes)) return [];
  return value.nodes.flatMap((node: unknown) => readKnownNode(node, incarnationOf) ?? []);
}

function readKnownNode(value: unknown, incarnationOf: (nodeId: number) => string | undefined): KnownNode | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  if (!('nodeId' in value && 'name' in value && 'peerAddress' in value)) return undefined;
  const { nodeId, name, peerAddress } = value;
  if (!isNodeId(nodeId) || typeof name !== 'string' || typeof peerAddress !== 'string') return undefined;
  const removed = 'removed' in value && value.removed === true;
  const incarnation = 'incarnation' in value ? value.incarnation : incarnationOf(nodeId);
  if (typeof incarnation !== 'string' || (incarnation === '' && !removed)) return undefined;
  return { nodeId, name, peerAddress, incarnation, removed };
}

export function isNodeId(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0;
}
