/**
 * Who is at the other end: both sides of every stream name themselves in their first metadata.
 *
 * K1. Nothing from a peer is used before its cluster, protocol version and identity were checked; that goes for the
 *     answering side too, as an address can have passed to another node.
 * K2. A refusal carries a code from the table of errors and a sentence for people, and reaches the refused side.
 */

import { Metadata, type MethodDefinition, type ServiceDefinition, type StatusObject, status } from '@grpc/grpc-js';
import { type ErrorCode, isErrorCode } from '@remora/base';
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

const KEYS = {
  version: 'remora-raft-version',
  cluster: 'remora-cluster',
  node: 'remora-node',
  incarnation: 'remora-incarnation',
  refusal: 'remora-refusal',
} as const;

export function identityMetadata(identity: PeerIdentity): Metadata {
  const metadata = new Metadata();
  metadata.set(KEYS.version, String(WIRE_VERSION));
  metadata.set(KEYS.cluster, encodeURIComponent(identity.clusterId));
  metadata.set(KEYS.node, String(identity.nodeId));
  metadata.set(KEYS.incarnation, encodeURIComponent(identity.incarnation));
  return metadata;
}

/** The peer behind `metadata`, or why it is not welcome (K1). `verify` is the node's own knowledge of its peers. */
export function checkPeer(
  metadata: Metadata,
  local: PeerIdentity,
  verify: (peer: PeerIdentity) => string | undefined,
): { readonly peer: PeerIdentity } | { readonly refusal: PeerRefusal } {
  const version = text(metadata, KEYS.version);
  const clusterId = text(metadata, KEYS.cluster);
  const nodeId = Number(text(metadata, KEYS.node));
  const incarnation = text(metadata, KEYS.incarnation);
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
  const reason = nodeId === local.nodeId ? 'it claims the id of the node it talks to' : verify(peer);
  if (reason === undefined) return { peer };
  return { refusal: { code: 'NODE_CONFLICT', message: `node ${nodeId} (${incarnation}): ${reason}` } };
}

const REFUSAL_STATUS: Partial<Record<ErrorCode, status>> = {
  INVALID_ARGUMENT: status.INVALID_ARGUMENT,
  UNIMPLEMENTED: status.UNIMPLEMENTED,
  UNAVAILABLE: status.UNAVAILABLE,
};

/** The status that ends a stream with a refusal (K2). */
export function refusalStatus({ code, message }: PeerRefusal): StatusObject {
  const metadata = new Metadata();
  metadata.set(KEYS.refusal, code);
  return { code: REFUSAL_STATUS[code] ?? status.FAILED_PRECONDITION, details: message, metadata };
}

/** The refusal in a stream's last status, if that is what ended it. */
export function refusalOf(ended: StatusObject): PeerRefusal | undefined {
  const code = text(ended.metadata, KEYS.refusal);
  return code !== undefined && isErrorCode(code) ? { code, message: ended.details } : undefined;
}

function text(metadata: Metadata, key: string): string | undefined {
  const value = metadata.get(key)[0];
  if (typeof value !== 'string') return undefined;
  try {
    return decodeURIComponent(value);
  } catch {
    return undefined;
  }
}

function isNodeId(value: number): boolean {
  return Number.isSafeInteger(value) && value > 0;
}

// ------------------------------------------------------------------------------------------------ service

const same = (bytes: Buffer): Buffer => bytes;

function streamOfBytes(path: string): MethodDefinition<Buffer, Buffer> {
  return {
    path,
    requestStream: true,
    responseStream: true,
    requestSerialize: same,
    requestDeserialize: same,
    responseSerialize: same,
    responseDeserialize: same,
  };
}

/** The service of one node towards the others. Its bodies are bytes in the codec's own form. */
export const RAFT_SERVICE = {
  frames: streamOfBytes('/remora.internal.Raft/Frames'),
  snapshot: streamOfBytes('/remora.internal.Raft/SnapshotTransfer'),
} as const satisfies ServiceDefinition;
