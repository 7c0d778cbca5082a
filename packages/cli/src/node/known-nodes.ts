import type { ClusterNode } from '@remora/gateway';
import type { ClusterView, NodeEntry } from '@remora/protocol';
import type { Founders } from './cluster-identity.ts';
import type { KnownNode } from './platform.ts';

/**
 * Where the nodes of a cluster are, on the disk of each of them.
 *
 * KN1. A node that restarts while no master can be reached finds its peers by it: after a failure of power the ranges
 *      elect their leaders whether masters have one yet or not.
 * KN2. It is a hint. What the masters say goes before it, links check who they lead to, and a file that is lost or
 *      damaged costs no more than the wait for a master, before which a refusal ends the node (standing.ts ST1).
 */
export function knownNodesOf(nodes: readonly NodeEntry[]): KnownNode[] {
  const there = nodes.filter(({ state }) => state !== 'removed');
  const known = there.map(({ descriptor: { nodeId, name, peerAddress } }) => ({ nodeId, name, peerAddress }));
  return known.sort((a, b) => a.nodeId - b.nodeId);
}

/** The nodes of the cluster: as the masters say, else as was written down, else those that founded it. */
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
  if (records.length > 0) return records.map(({ nodeId, name }) => ({ nodeId, name, removed: false }));
  return (founders?.members ?? []).map(({ name }, i) => ({ nodeId: i + 1, name, removed: false }));
}

export function sameNodes(a: readonly KnownNode[], b: readonly KnownNode[]): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** What a file says, as far as it makes sense (KN2). */
export function readKnownNodes(value: unknown): KnownNode[] {
  if (typeof value !== 'object' || value === null || !('nodes' in value) || !Array.isArray(value.nodes)) return [];
  return value.nodes.flatMap((node: unknown) => (isKnownNode(node) ? [node] : []));
}

function isKnownNode(value: unknown): value is KnownNode {
  if (typeof value !== 'object' || value === null) return false;
  if (!('nodeId' in value && 'name' in value && 'peerAddress' in value)) return false;
  const { nodeId, name, peerAddress } = value;
  return Number.isSafeInteger(nodeId) && typeof name === 'string' && typeof peerAddress === 'string';
}
