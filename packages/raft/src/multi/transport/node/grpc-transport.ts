/**
 * `Transport` over gRPC: for each pair of nodes and direction one stream of Raft frames, and one stream per snapshot.
 * A node dials the peers it has something to say to; its own server takes what they say.
 *
 * X1. What a peer sends is given on only after the handshake (handshake.ts K1), and only from its newest stream.
 * X2. Bytes that are no valid frame end the stream they came on, with a status that says so, and nothing else.
 */
import {
  ChannelCredentials,
  type handleBidiStreamingCall,
  type ServerDuplexStream,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { assert, type Clock, type Logger, type Random, silentLogger } from '@remora/base';
import type {
  GroupMessage,
  HeartbeatFrame,
  NodeId,
  SnapshotHeader,
  Transport,
  TransportHandlers,
} from '../../ports.ts';
import { IncomingFrames } from '../incoming-frames.ts';
import { IncomingSnapshots } from '../snapshot-incoming.ts';
import { type SnapshotLinkEvents, sendOverLinks } from '../snapshot-outgoing.ts';
import { newTraffic, type SnapshotTraffic } from '../snapshot-transfer.ts';
import { WireError } from '../wire-bytes.ts';
import { FramePeer, type FrameTraffic, newFrameTraffic, type PeerContext } from './frame-peer.ts';
import { type GivenGrpcTransportOptions, grpcTransportOptions } from './grpc-options.ts';
import {
  checkPeer,
  identityMetadata,
  type PeerIdentity,
  type PeerRefusal,
  RAFT_SERVICE,
  refusalStatus,
} from './handshake.ts';
import { dialSnapshot, receiveSnapshotStream } from './snapshot-stream.ts';

export interface GrpcTransportConfig {
  readonly local: PeerIdentity;
  /** `host:port` of a node as known now; undefined when it is not. Asked anew for each attempt to connect. */
  readonly resolveAddress: (node: NodeId) => string | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly options?: GivenGrpcTransportOptions;
  readonly logger?: Logger;
  /** How peers are dialled; without encryption unless given. */
  readonly credentials?: ChannelCredentials;
  /** What this node knows about its peers: a reason when `peer` is not the node it claims to be. */
  readonly verifyPeer: (peer: PeerIdentity) => string | undefined;
  readonly onPeerVerified?: (peer: PeerIdentity) => void;
  /** A peer refused this node. `NODE_CONFLICT` means that this node must not go on. */
  readonly onRefused?: (node: NodeId, refusal: PeerRefusal) => void;
}

export interface GrpcTransport {
  readonly transport: Transport;
  /** Counters of the frames sent. */
  readonly frameTraffic: Readonly<FrameTraffic>;
  /** Counters of the snapshots sent and received. */
  readonly snapshotTraffic: Readonly<SnapshotTraffic>;
  /** To be added to the node's server: `server.addService(service.definition, service.implementation)`. */
  readonly service: {
    readonly definition: typeof RAFT_SERVICE;
    readonly implementation: UntypedServiceImplementation;
  };
}

export function createGrpcTransport(config: GrpcTransportConfig): GrpcTransport {
  const node = new GrpcNode(config);
  return {
    transport: node,
    frameTraffic: node.frameTraffic,
    snapshotTraffic: node.snapshotTraffic,
    service: { definition: RAFT_SERVICE, implementation: node.implementation },
  };
}

type Call = ServerDuplexStream<Buffer, Buffer>;

/** A verified caller, and who takes what it says. */
interface Welcome {
  readonly peer: PeerIdentity;
  readonly handlers: TransportHandlers;
  readonly transfers: IncomingSnapshots;
}

class GrpcNode implements Transport {
  readonly implementation: UntypedServiceImplementation;
  readonly frameTraffic = newFrameTraffic();
  readonly snapshotTraffic = newTraffic();
  readonly #config: GrpcTransportConfig;
  readonly #context: PeerContext;
  readonly #logger: Logger;
  readonly #peers = new Map<NodeId, FramePeer>();
  /** The newest stream of frames from each peer (X1). */
  readonly #incoming = new Map<NodeId, Call>();
  readonly #snapshotsIn = new Set<Call>();
  readonly #stopped = new AbortController();
  #handlers: TransportHandlers | undefined;
  #transfers: IncomingSnapshots | undefined;

  constructor(config: GrpcTransportConfig) {
    const { local, clock, random, resolveAddress, verifyPeer, logger = silentLogger } = config;
    this.#config = config;
    this.#logger = logger;
    this.#context = {
      local,
      clock,
      random,
      logger,
      resolveAddress,
      verifyPeer,
      traffic: this.frameTraffic,
      options: grpcTransportOptions(config.options),
      credentials: config.credentials ?? ChannelCredentials.createInsecure(),
      onRefused: (node, refusal) => {
        logger.error({ peer: node, ...refusal }, 'a peer refused this node');
        config.onRefused?.(node, refusal);
      },
    };
    const frames: handleBidiStreamingCall<Buffer, Buffer> = (call) => this.#framesFrom(call);
    const snapshot: handleBidiStreamingCall<Buffer, Buffer> = (call) => void this.#snapshotFrom(call);
    this.implementation = { frames, snapshot };
  }

  start(handlers: TransportHandlers): void {
    assert(this.#handlers === undefined, 'a transport starts once');
    this.#handlers = handlers;
    const { clock, options } = this.#context;
    this.#transfers = new IncomingSnapshots({
      clock,
      options: options.snapshots,
      traffic: this.snapshotTraffic,
      onSnapshot: (from, header) => handlers.onSnapshot(from, header),
    });
  }

  send(node: NodeId, messages: readonly GroupMessage[]): void {
    if (!this.#stopped.signal.aborted) this.#peer(node).send(messages);
  }

  reach(node: NodeId): void {
    if (!this.#stopped.signal.aborted) this.#peer(node).reach();
  }

  sendHeartbeat(node: NodeId, frame: HeartbeatFrame): void {
    if (!this.#stopped.signal.aborted) this.#peer(node).sendHeartbeat(frame);
  }

  #peer(node: NodeId): FramePeer {
    let peer = this.#peers.get(node);
    if (peer === undefined) {
      peer = new FramePeer(this.#context, node, () => this.#handlers?.onUnreachable(node));
      this.#peers.set(node, peer);
    }
    return peer;
  }

  sendSnapshot(
    node: NodeId,
    header: SnapshotHeader,
    chunks: AsyncIterable<Uint8Array>,
    signal: AbortSignal,
    resumed?: () => void,
  ): Promise<void> {
    const { clock, random, options } = this.#context;
    const context = {
      clock,
      random,
      options: options.snapshots,
      traffic: this.snapshotTraffic,
      dial: (events: SnapshotLinkEvents) => dialSnapshot(this.#context, node, events),
    };
    const either = AbortSignal.any([signal, this.#stopped.signal]);
    return sendOverLinks(context, { header, chunks, signal: either, resumed });
  }

  async stop(): Promise<void> {
    this.#stopped.abort(new Error('the transport is stopped'));
    this.#transfers?.stop('the node is stopping');
    for (const peer of this.#peers.values()) peer.close();
    for (const call of [...this.#incoming.values(), ...this.#snapshotsIn]) {
      end(call, { code: 'UNAVAILABLE', message: 'the node is stopping' });
    }
    this.#peers.clear();
    this.#incoming.clear();
  }

  // ---------------------------------------------------------------------------------------------- from peers

  #framesFrom(call: Call): void {
    const welcome = this.#welcome(call);
    if (welcome === undefined) return;
    const { peer, handlers } = welcome;
    const older = this.#incoming.get(peer.nodeId);
    this.#incoming.set(peer.nodeId, call);
    if (older !== undefined) end(older, { code: 'UNAVAILABLE', message: 'a newer stream took its place' });
    // A stream from it shows that it is up: do not wait before dialling it.
    this.#peers.get(peer.nodeId)?.nudge();
    const frames = new IncomingFrames(peer.nodeId, handlers);
    call.on('data', (frame: Buffer) => this.#frame(call, peer.nodeId, frame, frames));
    const over = () => {
      if (this.#incoming.get(peer.nodeId) === call) this.#incoming.delete(peer.nodeId);
    };
    call.on('cancelled', over);
    call.on('end', () => {
      over();
      call.end();
    });
  }

  #frame(call: Call, from: NodeId, frame: Buffer, frames: IncomingFrames): void {
    if (this.#incoming.get(from) !== call) return; // X1
    try {
      frames.take(frame);
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      this.#logger.error({ peer: from, error: error.message }, 'a peer sent a malformed frame'); // X2
      this.#incoming.delete(from);
      end(call, { code: 'INVALID_ARGUMENT', message: `malformed frame: ${error.message}` });
    }
  }

  async #snapshotFrom(call: Call): Promise<void> {
    const welcome = this.#welcome(call);
    if (welcome === undefined) return;
    this.#snapshotsIn.add(call);
    await receiveSnapshotStream(call, welcome.peer.nodeId, welcome.transfers);
    this.#snapshotsIn.delete(call);
  }

  /** Checks who calls, and answers with our own name; undefined when the caller was sent away. */
  #welcome(call: Call): Welcome | undefined {
    const handlers = this.#handlers;
    const transfers = this.#transfers;
    call.on('error', () => undefined); // a broken stream is no news: the peer dials again
    if (handlers === undefined || transfers === undefined || this.#stopped.signal.aborted) {
      end(call, { code: 'UNAVAILABLE', message: 'the node is not running' });
      return undefined;
    }
    const { local, verifyPeer, onPeerVerified } = this.#config;
    const checked = checkPeer(call.metadata, local, verifyPeer);
    if ('refusal' in checked) {
      this.#logger.warn({ ...checked.refusal }, 'a peer was refused');
      end(call, checked.refusal);
      return undefined;
    }
    call.sendMetadata(identityMetadata(local));
    onPeerVerified?.(checked.peer);
    return { peer: checked.peer, handlers, transfers };
  }
}

/** Ends a stream with a status that says why. */
function end(call: Call, refusal: PeerRefusal): void {
  call.emit('error', refusalStatus(refusal));
}
