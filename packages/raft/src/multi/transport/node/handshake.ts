/**
 * Verifies the peer: both sides of every stream identify themselves in their hello.
 *
 * K1. Nothing from a peer is used before its cluster, protocol version and identity were checked. The dialling side
 *     checks too, because an address may have passed to another node.
 * K2. A refusal carries a code from the table of errors and a message for people, and reaches the refused side. It does
 *     not reveal what only members know: this node's cluster, or the incarnation by which it knows the peer.
 * K3. A node that dials an address which is now its own, and so reaches itself, is not refused: it keeps trying.
 */
import { type CertificateNames, type ErrorCode, type Hello, SERVICE, type StreamEnd } from '@remora/base';
import type { NodeId } from '../../ports.ts';
import { WIRE_VERSION } from '../wire-bytes.ts';

/** The identity of a node. The incarnation changes when its data directory is created again. */
export interface PeerIdentity {
  readonly clusterId: string;
  readonly nodeId: NodeId;
  readonly incarnation: string;
  /** `host:port` where others reach it, as it says. Not part of its identity. */
  readonly address?: string | undefined;
}

export interface PeerRefusal {
  readonly code: ErrorCode;
  readonly message: string;
}

/** The purposes of streams between nodes. */
export const FRAMES_SERVICE = 'raft.frames';
export const SNAPSHOT_SERVICE = 'raft.snapshot';

/** Returns the hello of a node, to begin a stream for `service` or to answer one. */
export function helloOf({ clusterId, nodeId, incarnation, address }: PeerIdentity, service: string): Hello {
  const identity = { version: String(WIRE_VERSION), cluster: clusterId, node: String(nodeId), incarnation };
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
  const { version, cluster: clusterId, incarnation } = hello;
  const nodeId = Number(hello.node);
  if (version === undefined || clusterId === undefined || incarnation === undefined || !isNodeId(nodeId)) {
    return { refusal: { code: 'INVALID_ARGUMENT', message: 'the stream does not name its node' } };
  }
  if (version !== String(WIRE_VERSION)) {
    const message = `raft wire version ${version} is not supported, only ${WIRE_VERSION}`;
    return { refusal: { code: 'UNIMPLEMENTED', message } };
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
  return refusal === undefined ? { peer } : { refusal };
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
