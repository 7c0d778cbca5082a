/**
 * `Transport` over sockets: for each pair of nodes and direction one stream of Raft frames, and one stream per
 * snapshot. A node dials the peers that it sends to; its own port receives their messages.
 *
 * X1. Messages of a peer are delivered only after the handshake (handshake.ts K1), and only from its newest stream.
 * X2. A peer is reported as gone when its stream to this node has ended and its address refuses connections
 *     (frame-peer.ts P4). Both must hold: a proxy that restarts, or a rule against one direction, usually leaves the
 *     other stream.
 * X3. Bytes that are not a valid frame end the stream they came on, with that reason, and nothing else.
 */
import {
  assert,
  type Clock,
  type Connector,
  type FrameService,
  type FrameStream,
  type Hello,
  joinSignals,
  type Logger,
  type Random,
  RareLog,
  silentLogger,
} from '@remora/base';
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
import {
  checkPeer,
  FRAMES_SERVICE,
  helloOf,
  type PeerIdentity,
  type PeerRefusal,
  SNAPSHOT_SERVICE,
  type VerifyPeer,
} from './handshake.ts';
import { dialSnapshot, receiveSnapshotStream } from './snapshot-stream.ts';
import { type GivenTransportOptions, transportOptions } from './transport-options.ts';

export interface SocketTransportConfig {
  readonly local: PeerIdentity;
  /** Returns the current `host:port` of a node; undefined if it is unknown. Called for each attempt to connect. */
  readonly resolveAddress: (node: NodeId) => string | undefined;
  /** An attempt to reach the node at this address has failed: nobody answers there, or another node does. */
  readonly onUnreached?: (node: NodeId, address: string) => void;
  readonly clock: Clock;
  readonly random: Random;
  readonly options?: GivenTransportOptions;
  /** Opens connections to peers; in plain text by default. */
  readonly connector?: Connector | undefined;
  readonly logger?: Logger;
  /**
   * Verifies peers that call this node and peers that answer it. A refusal of `UNAVAILABLE` is for a peer that is not
   * known yet: it tries again.
   */
  readonly verifyPeer: VerifyPeer;
  /** The same for peers that answer; `verifyPeer` by default. */
  readonly verifyAnswer?: VerifyPeer;
  /** Called when a verified peer has reached this node. */
  readonly onPeerVerified?: (peer: PeerIdentity) => void;
  /** A peer refused this node. It will refuse every further attempt. */
  readonly onRefused?: (node: NodeId, refusal: PeerRefusal) => void;
}

export interface SocketTransport {
  readonly transport: Transport;
  /** Counters of the frames sent. */
  readonly frameTraffic: Readonly<FrameTraffic>;
  /** Counters of the snapshots sent and received. */
  readonly snapshotTraffic: Readonly<SnapshotTraffic>;
  /** For the node's port (`openFramePort`). */
  readonly services: readonly FrameService[];
}

export function createSocketTransport(config: SocketTransportConfig): SocketTransport {
  const node = new SocketNode(config);
  return {
    transport: node,
    frameTraffic: node.frameTraffic,
    snapshotTraffic: node.snapshotTraffic,
    services: node.services,
  };
}

/** A verified caller, and the receiver of its messages. */
interface Welcome {
  readonly peer: PeerIdentity;
  readonly handlers: TransportHandlers;
  readonly transfers: IncomingSnapshots;
}

class SocketNode implements Transport {
  readonly services: readonly FrameService[];
  readonly frameTraffic = newFrameTraffic();
  readonly snapshotTraffic = newTraffic();
  readonly #config: SocketTransportConfig;
  readonly #context: PeerContext;
  readonly #logger: Logger;
  readonly #rareLog: RareLog;
  readonly #peers = new Map<NodeId, FramePeer>();
  /** The newest stream of frames from each peer (X1). */
  readonly #incoming = new Map<NodeId, FrameStream>();
  readonly #snapshotsIn = new Set<FrameStream>();
  readonly #stopped = new AbortController();
  #handlers: TransportHandlers | undefined;
  #transfers: IncomingSnapshots | undefined;

  constructor(config: SocketTransportConfig) {
    const { local, clock, random, resolveAddress, verifyPeer, logger = silentLogger } = config;
    const { verifyAnswer = verifyPeer, connector } = config;
    this.#config = config;
    this.#logger = logger;
    this.#rareLog = new RareLog(clock, logger);
    this.#context = {
      local,
      clock,
      random,
      logger,
      resolveAddress,
      verifyAnswer,
      connector,
      traffic: this.frameTraffic,
      options: transportOptions(config.options),
      onRefused: (node, refusal) => {
        logger.debug({ peer: node, ...refusal }, 'a peer refused this node');
        config.onRefused?.(node, refusal);
      },
      onRefusing: (node) => this.#lookWhetherGone(node),
      onUnreached: (node, address) => config.onUnreached?.(node, address),
    };
    this.services = [
      { name: FRAMES_SERVICE, open: (hello, stream) => this.#framesFrom(hello, stream) },
      { name: SNAPSHOT_SERVICE, open: (hello, stream) => this.#snapshotFrom(hello, stream) },
    ];
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

  /** X2. */
  #lookWhetherGone(node: NodeId): void {
    if (this.#incoming.has(node) || this.#peers.get(node)?.refusing !== true) return;
    this.#handlers?.onGone(node);
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
    const either = joinSignals([signal, this.#stopped.signal]);
    return sendOverLinks(context, { header, chunks, signal: either.signal, resumed }).finally(either.letGo);
  }

  async stop(): Promise<void> {
    this.#stopped.abort(new Error('the transport is stopped'));
    this.#transfers?.stop('the node is stopping');
    for (const peer of this.#peers.values()) peer.close();
    for (const stream of [...this.#incoming.values(), ...this.#snapshotsIn]) {
      stream.end({ code: 'UNAVAILABLE', message: 'the node is stopping' });
    }
    this.#peers.clear();
    this.#incoming.clear();
  }

  // ---------------------------------------------------------------------------------------------- from peers

  #framesFrom(hello: Hello, stream: FrameStream): void {
    const welcome = this.#welcome(hello, stream, FRAMES_SERVICE);
    if (welcome === undefined) return;
    const { peer, handlers } = welcome;
    const older = this.#incoming.get(peer.nodeId);
    this.#incoming.set(peer.nodeId, stream);
    older?.end({ code: 'UNAVAILABLE', message: 'replaced by a newer stream' });
    // The peer's stream shows that it is up: dial it without waiting.
    this.#peers.get(peer.nodeId)?.nudge();
    const frames = new IncomingFrames(peer.nodeId, handlers);
    stream.handle({
      onFrame: (frame) => this.#frame(stream, peer.nodeId, frame, frames),
      onDrain: () => undefined,
      onEnd: () => {
        if (this.#incoming.get(peer.nodeId) !== stream) return;
        this.#incoming.delete(peer.nodeId);
        this.#lookWhetherGone(peer.nodeId);
      },
    });
  }

  #frame(stream: FrameStream, from: NodeId, frame: Buffer, frames: IncomingFrames): void {
    if (this.#incoming.get(from) !== stream) return; // X1
    try {
      frames.take(frame);
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      this.#logger.error({ peer: from, error: error.message }, 'a peer sent a malformed frame'); // X3
      this.#incoming.delete(from);
      stream.end({ code: 'INVALID_ARGUMENT', message: `malformed frame: ${error.message}` });
    }
  }

  #snapshotFrom(hello: Hello, stream: FrameStream): void {
    const welcome = this.#welcome(hello, stream, SNAPSHOT_SERVICE);
    if (welcome === undefined) return;
    this.#snapshotsIn.add(stream);
    receiveSnapshotStream(stream, welcome.peer.nodeId, welcome.transfers, () => this.#snapshotsIn.delete(stream));
  }

  /** Verifies the caller, and answers with this node's hello; undefined if the caller was rejected. */
  #welcome(hello: Hello, stream: FrameStream, service: string): Welcome | undefined {
    const handlers = this.#handlers;
    const transfers = this.#transfers;
    if (handlers === undefined || transfers === undefined || this.#stopped.signal.aborted) {
      stream.end({ code: 'UNAVAILABLE', message: 'the node is not running' });
      return undefined;
    }
    const { local, verifyPeer, onPeerVerified } = this.#config;
    const checked = checkPeer(hello, local, (peer) => verifyPeer(peer, stream.peerCertificate));
    if ('refusal' in checked) {
      this.#rareLog.warn(checked.refusal.code, { ...checked.refusal }, 'a peer was refused');
      stream.end(checked.refusal);
      return undefined;
    }
    stream.sayHello(helloOf(local, service));
    stream.trust();
    onPeerVerified?.(checked.peer);
    return { peer: checked.peer, handlers, transfers };
  }
}
