/**
 * Verifies the peer: both sides of every stream identify themselves in their hello.
 *
 * K1. Nothing from a peer is used before its cluster, its identity and the versions of its build were checked. The
 *     dialling side checks too, because an address may have passed to another node.
 * K2. A refusal carries a code from the table of errors and a message for people, and reaches the refused side. It does
 *     not reveal what only members know: this node's cluster, or the incarnation by which it knows the peer.
 * K3. A node that dials an address which is now its own, and so reaches itself, is not refused: it keeps trying.
 */
import {
  BUILD_VERSIONS,
  type CertificateNames,
  type ErrorCode,
  type Hello,
  rangeOf,
  rangeText,
  SERVICE,
  type SpokenVersions,
  type StreamEnd,
  versionRefusal,
} from '@remora/base';
import type { NodeId } from '../../ports.ts';

/** The identity of a node. The incarnation changes when its data directory is created again. */
export interface PeerIdentity {
  readonly clusterId: string;
  readonly nodeId: NodeId;
  readonly incarnation: string;
  /** `host:port` where others reach it, as it says. Not part of its identity. */
  readonly address?: string | undefined;
  /** Of the node itself; absent: the versions of this build, and none is in force. */
  readonly versions?: SpokenVersions;
}

const UNSAID: SpokenVersions = { builds: BUILD_VERSIONS };

export interface PeerRefusal {
  readonly code: ErrorCode;
  readonly message: string;
}

/** The purposes of streams between nodes. */
export const FRAMES_SERVICE = 'raft.frames';
export const SNAPSHOT_SERVICE = 'raft.snapshot';

/** Returns the hello of a node, to begin a stream for `service` or to answer one. */
export function helloOf({ clusterId, nodeId, incarnation, address, versions }: PeerIdentity, service: string): Hello {
  const spoken = rangeText((versions ?? UNSAID).builds);
  const identity = { versions: spoken, cluster: clusterId, node: String(nodeId), incarnation };
  return { [SERVICE]: service, ...identity, ...(address === undefined ? {} : { address }) };
}

/**
 * Checks a peer's identity: returns why `peer` may not be the node that it claims to be. `certificate` is undefined
 * without TLS.
 */
export type VerifyPeer = (peer: PeerIdentity, certificate?: CertificateNames) => PeerRefusal | undefined;

/** Returns the peer that sent `hello`, or why it is refused (K1). */
export function checkPeer(
  hello: Hello,
  local: PeerIdentity,
  verify: (peer: PeerIdentity) => PeerRefusal | undefined,
): { readonly peer: PeerIdentity } | { readonly refusal: PeerRefusal } {
  const { cluster: clusterId, incarnation } = hello;
  const nodeId = Number(hello.node);
  if (clusterId === undefined || incarnation === undefined || !isNodeId(nodeId)) {
    return { refusal: { code: 'INVALID_ARGUMENT', message: 'the stream does not name its node' } };
  }
  if (clusterId !== local.clusterId) {
    const message = `node ${nodeId} belongs to cluster ${clusterId}, which is not the cluster of node ${local.nodeId}`;
    return { refusal: { code: 'WRONG_CLUSTER', message } };
  }
  const peer = { clusterId, nodeId, incarnation, address: hello.address };
  if (nodeId === local.nodeId && incarnation === local.incarnation) {
    return { refusal: { code: 'UNAVAILABLE', message: `node ${nodeId} connected to itself` } }; // K3
  }
  if (nodeId === local.nodeId) {
    const message = `the peer claims node id ${nodeId}, which is the id of this node`;
    return { refusal: { code: 'NODE_CONFLICT', message } };
  }
  const refusal = verify(peer);
  if (refusal !== undefined) return { refusal };
  const who = { own: `node ${local.nodeId}`, peer: `node ${nodeId}` };
  const message = versionRefusal(local.versions ?? UNSAID, rangeOf(hello.versions ?? ''), who);
  return message === undefined ? { peer } : { refusal: { code: 'VERSION_REFUSED', message } };
}

/**
 * The same for the peer that answers where `node` was dialled; any other node is refused without further checks (K1).
 */
export function checkAnswer(
  hello: Hello,
  local: PeerIdentity,
  node: NodeId,
  verify: (peer: PeerIdentity) => PeerRefusal | undefined,
): PeerRefusal | undefined {
  const checked = checkPeer(hello, local, (peer) => {
    if (peer.nodeId === node) return verify(peer);
    return { code: 'UNAVAILABLE', message: `node ${peer.nodeId} answers at that address` };
  });
  return 'refusal' in checked ? checked.refusal : undefined;
}

/** Returns the refusal that ended a stream, if a refusal did. */
export function refusalOf({ code, message }: StreamEnd): PeerRefusal | undefined {
  return code === undefined ? undefined : { code, message };
}

function isNodeId(value: number): boolean {
  return Number.isSafeInteger(value) && value > 0;
}
