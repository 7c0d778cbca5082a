/**
 * The outgoing stream of Raft frames to one peer.
 *
 * P1. One connection, one stream, and one attempt at a time. Each attempt dials afresh and asks for the address anew.
 * P2. Nothing waits without bound: frames for a peer that is down are dropped, those for one that is being dialled or
 *     is slow are kept up to `queueBytesMax`, beyond that dropped. Raft sends again what matters.
 * P3. Whenever frames may have been lost after the peer was thought reachable, `lost` is called, once per occasion.
 */
import {
  type ChannelCredentials,
  Client,
  type ClientDuplexStream,
  type Metadata,
  type StatusObject,
} from '@grpc/grpc-js';
import type { Clock, Logger, Random, Timer } from '@remora/base';
import type { GroupMessage, HeartbeatFrame, NodeId } from '../../ports.ts';
import { encodedBytesMax, encodeFrame } from '../codec.ts';
import { HeartbeatEncoder } from '../heartbeat-codec.ts';
import { channelOptions, type GrpcTransportOptions } from './grpc-options.ts';
import {
  checkPeer,
  identityMetadata,
  type PeerIdentity,
  type PeerRefusal,
  RAFT_SERVICE,
  refusalOf,
} from './handshake.ts';

/** What was given to streams, over all peers. */
export interface FrameTraffic {
  frames: number;
  bytes: number;
  /** Of these, merged heartbeats and their replies. */
  heartbeatFrames: number;
  heartbeatBytes: number;
  /** Frames that met a full queue. */
  dropped: number;
}

export function newFrameTraffic(): FrameTraffic {
  return { frames: 0, bytes: 0, heartbeatFrames: 0, heartbeatBytes: 0, dropped: 0 };
}

export interface PeerContext {
  readonly local: PeerIdentity;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly options: GrpcTransportOptions;
  readonly credentials: ChannelCredentials;
  readonly resolveAddress: (node: NodeId) => string | undefined;
  readonly verifyPeer: (peer: PeerIdentity) => string | undefined;
  readonly onRefused: (node: NodeId, refusal: PeerRefusal) => void;
  readonly traffic: FrameTraffic;
}

type Call = ClientDuplexStream<Buffer, Buffer>;

type State =
  | { readonly at: 'idle' | 'closed' }
  | { readonly at: 'waiting'; readonly timer: Timer }
  | { readonly at: 'dialling' | 'open'; readonly client: Client; readonly call: Call; readonly timer: Timer };

export class FramePeer {
  readonly #context: PeerContext;
  readonly #node: NodeId;
  readonly #lost: () => void;
  readonly #heartbeats = new HeartbeatEncoder();
  #state: State = { at: 'idle' };
  /** Bytes queued or written, and not yet taken by the socket. */
  #pendingBytes = 0;
  #queue: Buffer[] = [];
  #failures = 0;
  /** The queue has overflowed and has not drained since. */
  #overflowing = false;

  constructor(context: PeerContext, node: NodeId, lost: () => void) {
    this.#context = context;
    this.#node = node;
    this.#lost = lost;
  }

  send(messages: readonly GroupMessage[]): void {
    if (!this.#reachable()) return;
    for (const frame of cutFrames(messages, this.#context.options.frameBytesMax)) {
      this.#sendFrame(() => encodeFrame(frame));
    }
  }

  sendHeartbeat(frame: HeartbeatFrame): void {
    if (!this.#reachable()) return;
    const bytes = this.#sendFrame(() => this.#heartbeats.encode(frame));
    const { traffic } = this.#context;
    if (bytes > 0) traffic.heartbeatFrames++;
    traffic.heartbeatBytes += bytes;
  }

  /** Dials if nobody has yet, so that the first frame need not wait for that. */
  reach(): void {
    this.#reachable();
  }

  /** Dials if nobody has yet; false while frames are dropped (P2). */
  #reachable(): boolean {
    if (this.#state.at === 'idle') this.#dial();
    return this.#state.at === 'open' || this.#state.at === 'dialling';
  }

  /** The peer has shown that it is alive: do not wait out the pause. */
  nudge(): void {
    if (this.#state.at !== 'waiting') return;
    this.#state.timer.cancel();
    this.#failures = 0;
    this.#dial();
  }

  close(): void {
    const state = this.#state;
    this.#state = { at: 'closed' };
    if (state.at === 'waiting') state.timer.cancel();
    if (state.at === 'dialling' || state.at === 'open') release(state);
    this.#forgetQueue();
  }

  // ---------------------------------------------------------------------------------------------- connection

  #dial(): void {
    const { clock, options, credentials, resolveAddress, local } = this.#context;
    const address = resolveAddress(this.#node);
    if (address === undefined) return this.#pause(this.#backoffMs());
    const client = new Client(address, credentials, channelOptions(options));
    const { path, requestSerialize, responseDeserialize } = RAFT_SERVICE.frames;
    const call: Call = client.makeBidiStreamRequest(
      path,
      requestSerialize,
      responseDeserialize,
      identityMetadata(local),
    );
    const timer = clock.setTimer(options.connectTimeoutMs, () => this.#broken(call, 'the handshake took too long'));
    this.#state = { at: 'dialling', client, call, timer };
    call.on('metadata', (metadata: Metadata) => this.#answered(call, metadata));
    call.on('status', (ended: StatusObject) => this.#ended(call, ended));
    call.on('error', () => undefined); // `status` tells the same
    call.on('data', () => undefined); // nothing is sent this way
  }

  #answered(call: Call, metadata: Metadata): void {
    const state = this.#state;
    if (state.at !== 'dialling' || state.call !== call) return;
    const { local, verifyPeer, logger } = this.#context;
    const checked = checkPeer(metadata, local, verifyPeer);
    if ('refusal' in checked || checked.peer.nodeId !== this.#node) {
      const reason = 'refusal' in checked ? checked.refusal.message : `node ${checked.peer.nodeId} answers there`;
      return this.#broken(call, reason, this.#context.options.refusedBackoffMs);
    }
    state.timer.cancel();
    this.#state = { ...state, at: 'open' };
    this.#failures = 0;
    logger.info({ peer: this.#node }, 'connected to a peer');
    const queue = this.#queue;
    this.#queue = [];
    for (const frame of queue) this.#write(call, frame);
  }

  #ended(call: Call, ended: StatusObject): void {
    const refusal = refusalOf(ended);
    // A peer that is stopping, or has a newer stream of ours, does not refuse us.
    if (refusal === undefined || refusal.code === 'UNAVAILABLE') return this.#broken(call, ended.details);
    if (!this.#isCurrent(call)) return;
    this.#broken(call, refusal.message, this.#context.options.refusedBackoffMs);
    this.#context.onRefused(this.#node, refusal);
  }

  #broken(call: Call, reason: string, pauseMs?: number): void {
    const state = this.#state;
    if ((state.at !== 'dialling' && state.at !== 'open') || state.call !== call) return;
    const firstFailure = this.#failures === 0;
    const hadFrames = state.at === 'open' || this.#queue.length > 0;
    release(state);
    this.#forgetQueue();
    this.#pause(pauseMs ?? this.#backoffMs());
    const { logger } = this.#context;
    if (firstFailure) logger.warn({ peer: this.#node, reason }, 'no connection to a peer');
    if (hadFrames) this.#lost(); // P3
  }

  #isCurrent(call: Call): boolean {
    return (this.#state.at === 'dialling' || this.#state.at === 'open') && this.#state.call === call;
  }

  #pause(delayMs: number): void {
    this.#failures++;
    const timer = this.#context.clock.setTimer(delayMs, () => {
      this.#state = { at: 'idle' }; // the next frame dials: a peer that nobody talks to costs nothing
    });
    this.#state = { at: 'waiting', timer };
  }

  /** Doubles with each failure; the random half keeps nodes from dialling in step. */
  #backoffMs(): number {
    const { backoffMinMs, backoffMaxMs } = this.#context.options;
    const full = Math.min(backoffMaxMs, backoffMinMs * 2 ** Math.min(this.#failures, 16));
    return full / 2 + this.#context.random.int(Math.ceil(full / 2) + 1);
  }

  // ---------------------------------------------------------------------------------------------- frames

  /** The frame's size; 0 when it was dropped. */
  #sendFrame(encode: () => Buffer): number {
    const { options, traffic } = this.#context;
    if (this.#pendingBytes > options.queueBytesMax) {
      traffic.dropped++;
      this.#overflow();
      return 0;
    }
    this.#overflowing = false;
    const frame = encode();
    this.#pendingBytes += frame.length;
    if (this.#state.at === 'open') this.#write(this.#state.call, frame);
    else this.#queue.push(frame);
    traffic.frames++;
    traffic.bytes += frame.length;
    return frame.length;
  }

  #write(call: Call, frame: Buffer): void {
    call.write(frame, () => {
      if (this.#isCurrent(call)) this.#pendingBytes -= frame.length;
    });
  }

  #overflow(): void {
    if (this.#overflowing) return;
    this.#overflowing = true;
    this.#context.logger.warn(
      { peer: this.#node, bytes: this.#pendingBytes },
      'a peer is too slow: frames are dropped',
    );
    this.#lost(); // P3
  }

  #forgetQueue(): void {
    this.#queue = [];
    this.#pendingBytes = 0;
    this.#overflowing = false;
  }
}

function release({
  client,
  call,
  timer,
}: {
  readonly client: Client;
  readonly call: Call;
  readonly timer: Timer;
}): void {
  timer.cancel();
  call.cancel();
  client.close();
}

/** Cuts what one turn sends into frames of bounded size; nearly always it is one. */
function cutFrames(messages: readonly GroupMessage[], bytesMax: number): readonly (readonly GroupMessage[])[] {
  const frames: GroupMessage[][] = [];
  let frame: GroupMessage[] = [];
  let bytes = 0;
  for (const item of messages) {
    frame.push(item);
    bytes += encodedBytesMax(item.message);
    if (bytes < bytesMax) continue;
    frames.push(frame);
    frame = [];
    bytes = 0;
  }
  if (frame.length > 0) frames.push(frame);
  return frames;
}
