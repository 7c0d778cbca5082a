/**
 * Who is at the other end: both sides of every stream name themselves in their hello.
 *
 * K1. Nothing from a peer is used before its cluster, protocol version and identity were checked; that goes for the
 *     answering side too, as an address can have passed to another node.
 * K2. A refusal carries a code from the table of errors and a sentence for people, and reaches the refused side.
 * K3. A node that finds itself at the address of another, which it has by now, is refused by nobody: it looks on.
 */
import { type ErrorCode, type Hello, SERVICE, type StreamEnd } from '@remora/base';
import type { NodeId } from '../../ports.ts';
import { WIRE_VERSION } from '../wire-bytes.ts';

/** A node as it names itself. The incarnation changes when its data directory is made anew. */
export interface PeerIdentity {
  readonly clusterId: string;
  readonly nodeId: NodeId;
  readonly incarnation: string;
}

export interface PeerRefusal {
  readonly code: ErrorCode;
  readonly message: string;
}

/** What a stream between nodes is for. */
export const FRAMES_SERVICE = 'raft.frames';
export const SNAPSHOT_SERVICE = 'raft.snapshot';

/** The hello of a node: to begin a stream for `service`, or to answer one. */
export function helloOf({ clusterId, nodeId, incarnation }: PeerIdentity, service: string): Hello {
  return { [SERVICE]: service, version: String(WIRE_VERSION), cluster: clusterId, node: String(nodeId), incarnation };
}

/** The peer behind `hello`, or why it is not welcome (K1). `verify` is the node's own knowledge of its peers. */
export function checkPeer(
  hello: Hello,
  local: PeerIdentity,
  verify: (peer: PeerIdentity) => string | undefined,
): { readonly peer: PeerIdentity } | { readonly refusal: PeerRefusal } {
  const { version, cluster: clusterId, incarnation } = hello;
  const nodeId = Number(hello.node);
  if (version === undefined || clusterId === undefined || incarnation === undefined || !isNodeId(nodeId)) {
    return { refusal: { code: 'INVALID_ARGUMENT', message: 'the stream does not name its node' } };
  }
  if (version !== String(WIRE_VERSION)) {
    const message = `raft wire version ${version} is not spoken here, only ${WIRE_VERSION}`;
    return { refusal: { code: 'UNIMPLEMENTED', message } };
  }
  if (clusterId !== local.clusterId) {
    const message = `node ${nodeId} belongs to cluster ${clusterId}, node ${local.nodeId} to ${local.clusterId}`;
    return { refusal: { code: 'WRONG_CLUSTER', message } };
  }
  const peer = { clusterId, nodeId, incarnation };
  if (nodeId === local.nodeId && incarnation === local.incarnation) {
    return { refusal: { code: 'UNAVAILABLE', message: `node ${nodeId} has reached itself` } }; // K3
  }
  const reason = nodeId === local.nodeId ? 'it claims the id of the node it talks to' : verify(peer);
  if (reason === undefined) return { peer };
  return { refusal: { code: 'NODE_CONFLICT', message: `node ${nodeId} (${incarnation}): ${reason}` } };
}

/** The refusal in the end of a stream, if that is what ended it. */
export function refusalOf({ code, message }: StreamEnd): PeerRefusal | undefined {
  return code === undefined ? undefined : { code, message };
}

function isNodeId(value: number): boolean {
  return Number.isSafeInteger(value) && value > 0;
}
