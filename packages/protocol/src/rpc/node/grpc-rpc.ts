import {
  type ChannelCredentials,
  Client,
  credentials as grpcCredentials,
  type handleBidiStreamingCall,
  Metadata,
  type ServerDuplexStream,
  type ServiceDefinition,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { type Bytes, type Clock, type Logger, ServiceError, silentLogger } from '@remora/base';
import type { FrameLink } from '../link.ts';
import type { RpcDispatcher } from '../registry.ts';
import { type ServedLink, type ServerLimits, serveLink } from '../server.ts';
import { CHANNEL_OPTIONS, clientLink, metadataText, rawBytes, refuseStream, serverLink } from './grpc-link.ts';

/**
 * RPC between nodes over gRPC: one bidirectional stream per pair of nodes and direction of calls.
 *
 * G1. Both ends name cluster, node, incarnation and protocol version in the stream's first metadata; either refuses
 *     the other with a clear status. Nothing is sent before the dialling end has checked the answer: an address that
 *     now belongs to another node gets no calls.
 * G2. A node that is not a member yet (cluster id empty, node 0) may only ask to join and for the view.
 */
/** 2: heartbeats tell the epochs of replicas and what leaders know, and their answers carry orders. */
export const RPC_PROTOCOL_VERSION = '2';

/** The one method of the service: a stream of frames each way. */
export const RPC_PATH = '/remora.internal.Rpc/Open';

const definition = {
  open: {
    path: RPC_PATH,
    requestStream: true,
    responseStream: true,
    requestSerialize: rawBytes.serialize,
    requestDeserialize: rawBytes.deserialize,
    responseSerialize: rawBytes.serialize,
    responseDeserialize: rawBytes.deserialize,
  },
} as const satisfies ServiceDefinition;

const JOINING_METHODS: ReadonlySet<string> = new Set(['master.join', 'master.view']);

/** Who a node is. Empty cluster and node 0: it has not joined yet. */
export interface LinkIdentity {
  readonly clusterId: string;
  readonly nodeId: number;
  readonly incarnation: string;
}

export interface RpcServiceOptions {
  /** Asked at each connection, as a node learns its cluster and id when it joins. */
  readonly identity: () => LinkIdentity;
  readonly registry: RpcDispatcher;
  readonly clock: Clock;
  readonly limits?: ServerLimits;
  /** A further check of who calls: NODE_CONFLICT for a node that is known under another incarnation. */
  readonly acceptPeer?: (peer: LinkIdentity) => ServiceError | undefined;
  readonly logger?: Logger;
}

export interface RpcService {
  readonly definition: ServiceDefinition;
  readonly implementation: UntypedServiceImplementation;
  /** Ends all links that peers have opened. */
  close(): void;
}

/** The service for the node's peer server: `server.addService(rpc.definition, rpc.implementation)`. */
export function createRpcService(options: RpcServiceOptions): RpcService {
  const logger = options.logger ?? silentLogger;
  const links = new Set<ServedLink>();

  function open(stream: ServerDuplexStream<Bytes, Bytes>): void {
    const local = options.identity();
    const peer = readIdentity(stream.metadata);
    const refusal = checkPeer(stream.metadata, peer, local) ?? options.acceptPeer?.(peer);
    if (refusal !== undefined) {
      logger.warn({ peer: peer.nodeId, code: refusal.code, reason: refusal.message }, 'refused a peer');
      stream.on('error', () => {});
      refuseStream(stream, refusal);
      return;
    }
    stream.sendMetadata(identityMetadata(local));
    const joined = peer.clusterId !== '';
    const link = serveLink({
      link: serverLink(stream),
      registry: options.registry,
      clock: options.clock,
      peer: joined ? peer.nodeId : 0,
      allows: (method) => joined || JOINING_METHODS.has(method),
      onClose: () => links.delete(link),
      ...(options.limits === undefined ? {} : { limits: options.limits }),
    });
    links.add(link);
  }

  const handler: handleBidiStreamingCall<Bytes, Bytes> = open;
  return {
    definition,
    implementation: { open: handler },
    close() {
      const reason = new ServiceError('UNAVAILABLE', 'the node is stopping');
      for (const link of [...links]) link.close(reason);
    },
  };
}

/** Begins a link to a peer in the name of `local` (G1); without encryption unless credentials are given. */
export function dialRpc(
  target: { readonly address: string; readonly nodeId: number },
  local: LinkIdentity,
  credentials: ChannelCredentials = grpcCredentials.createInsecure(),
): FrameLink {
  // Its own subchannel: a shared one would be closed, or held in back-off, for everybody.
  const client = new Client(target.address, credentials, { ...CHANNEL_OPTIONS, 'grpc.use_local_subchannel_pool': 1 });
  const stream = client.makeBidiStreamRequest(
    RPC_PATH,
    rawBytes.serialize,
    rawBytes.deserialize,
    identityMetadata(local),
  );
  stream.on('status', () => client.close());
  return clientLink(stream, (metadata) => {
    const peer = readIdentity(metadata);
    const refusal = checkPeer(metadata, peer, local);
    if (refusal !== undefined) return refusal;
    if (target.nodeId === 0 || peer.nodeId === target.nodeId) return undefined;
    // The node that is looked for is not there. Nobody has refused this one, which is what NODE_CONFLICT would say.
    return new ServiceError(
      'UNAVAILABLE',
      `${target.address} was to be node ${target.nodeId} but is node ${peer.nodeId}`,
    );
  });
}

const KEYS = {
  cluster: 'remora-cluster',
  node: 'remora-node',
  incarnation: 'remora-incarnation',
  protocol: 'remora-protocol',
} as const;

function identityMetadata(identity: LinkIdentity): Metadata {
  const metadata = new Metadata();
  metadata.set(KEYS.cluster, identity.clusterId);
  metadata.set(KEYS.node, String(identity.nodeId));
  metadata.set(KEYS.incarnation, identity.incarnation);
  metadata.set(KEYS.protocol, RPC_PROTOCOL_VERSION);
  return metadata;
}

/** Whoever names no cluster has no id in it either (G2). */
function readIdentity(metadata: Metadata): LinkIdentity {
  const clusterId = metadataText(metadata, KEYS.cluster);
  const nodeId = clusterId === '' ? 0 : Number(metadataText(metadata, KEYS.node));
  return {
    clusterId,
    nodeId: Number.isSafeInteger(nodeId) && nodeId > 0 ? nodeId : 0,
    incarnation: metadataText(metadata, KEYS.incarnation),
  };
}

/** G1. A node without a cluster is welcome for what G2 allows, and may itself talk to anybody. */
function checkPeer(metadata: Metadata, peer: LinkIdentity, local: LinkIdentity): ServiceError | undefined {
  const protocol = metadataText(metadata, KEYS.protocol);
  if (protocol !== RPC_PROTOCOL_VERSION) {
    return new ServiceError(
      'UNIMPLEMENTED',
      `the peer speaks RPC protocol '${protocol}', this node '${RPC_PROTOCOL_VERSION}'`,
    );
  }
  if (peer.clusterId !== '' && local.clusterId !== '' && peer.clusterId !== local.clusterId) {
    return new ServiceError('WRONG_CLUSTER', `cluster '${peer.clusterId}' is not cluster '${local.clusterId}'`);
  }
  return undefined;
}
