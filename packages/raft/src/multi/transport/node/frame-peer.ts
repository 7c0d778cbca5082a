/**
 * The outgoing stream of Raft frames to one peer.
 *
 * P1. One connection, one stream, and one attempt at a time. Each attempt dials afresh and resolves the address again.
 * P2. Every queue is bounded. Frames for a peer that is down are dropped. Frames for a peer that is being dialled or is
 *     slow are kept up to `queueBytesMax`, and dropped beyond that. Raft repeats what matters.
 * P3. Whenever frames may have been lost after the peer was believed reachable, `lost` is called, once per occasion.
 * P4. When a stream that was open breaks, the address is dialled again soon, at most `CHECKS_MAX` times, until a
 *     process answers or the connection is refused. If the very address that the peer had answered at refuses, the peer
 *     is `refusing`: its process has ended, unless a firewall or a proxy refuses for it. Silence is no such sign.
 */
import {
  type Clock,
  type Connector,
  dialFrames,
  type FrameStream,
  type Hello,
  type Logger,
  type Random,
  type StreamEnd,
  type Timer,
} from '@remora/base';
import type { GroupMessage, HeartbeatFrame, NodeId } from '../../ports.ts';
import { encodedBytesMax, encodeFrame } from '../codec.ts';
import { HeartbeatEncoder } from '../heartbeat-codec.ts';
import {
  checkAnswer,
  FRAMES_SERVICE,
  helloOf,
  type PeerIdentity,
  type PeerRefusal,
  refusalOf,
  type VerifyPeer,
} from './handshake.ts';
import { streamOptions, type TransportOptions } from './transport-options.ts';

/** Bytes and frames passed to streams, over all peers. */
export interface FrameTraffic {
  frames: number;
  bytes: number;
  /** The part of these that are merged heartbeats and their replies. */
  heartbeatFrames: number;
  heartbeatBytes: number;
  /** Frames dropped because a queue was full. */
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
  readonly options: TransportOptions;
  readonly resolveAddress: (node: NodeId) => string | undefined;
  readonly verifyAnswer: VerifyPeer;
  readonly connector: Connector | undefined;
  readonly onRefused: (node: NodeId, refusal: PeerRefusal) => void;
  /** The peer has become `refusing` (P4). */
  readonly onRefusing: (node: NodeId) => void;
  /** An attempt at this address has failed. */
  readonly onUnreached: (node: NodeId, address: string) => void;
  readonly traffic: FrameTraffic;
}

type State =
  | { readonly at: 'idle' | 'closed' }
  | { readonly at: 'waiting'; readonly timer: Timer }
  | {
      readonly at: 'dialling' | 'open';
      readonly address: string;
      readonly stream: FrameStream;
      readonly timer: Timer;
    };

/** How often a broken stream's address is dialled to find out whether the process is gone (P4). */
const CHECKS_MAX = 4;
/** The pause before the first of them: a process that ends closes its connections and its port one after the other. */
const CHECK_MS = 5;

export class FramePeer {
  readonly #context: PeerContext;
  readonly #node: NodeId;
  readonly #lost: () => void;
  readonly #heartbeats = new HeartbeatEncoder();
  #state: State = { at: 'idle' };
  /** Frames for a peer that has not answered yet, and their bytes. */
  #queue: Buffer[] = [];
  #queuedBytes = 0;
  #failures = 0;
  /** The queue has overflowed and has not drained since. */
  #overflowing = false;
  /** Where the peer last answered; undefined once that address refused. */
  #answeredAt: string | undefined;
  #checksLeft = 0;
  #refusing = false;

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

  /** Dials if there is no connection yet, so that the first frame need not wait for that. */
  reach(): void {
    this.#reachable();
  }

  /** Dials if there is no connection yet; returns false while frames are dropped (P2). */
  #reachable(): boolean {
    if (this.#state.at === 'idle') this.#dial();
    return this.#state.at === 'open' || this.#state.at === 'dialling';
  }

  /** The peer has shown that it is alive: ends the pause. */
  nudge(): void {
    if (this.#state.at !== 'waiting') return;
    this.#state.timer.cancel();
    this.#failures = 0;
    this.#dial();
  }

  /** Its last address refuses connections, since a stream to it broke (P4). */
  get refusing(): boolean {
    return this.#refusing;
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
    const { clock, options, resolveAddress, local, connector } = this.#context;
    const isCheck = this.#checksLeft > 0 && this.#answeredAt !== undefined;
    const address = isCheck ? this.#answeredAt : resolveAddress(this.#node);
    if (address === undefined) return this.#pause(this.#backoffMs());
    const stream: FrameStream = dialFrames(
      address,
      helloOf(local, FRAMES_SERVICE),
      { ...streamOptions(options, clock), connector },
      {
        onHello: (hello) => this.#answered(stream, hello),
        onFrame: () => undefined, // peers send nothing in this direction
        onDrain: () => undefined,
        onEnd: (end) => this.#ended(stream, end),
      },
    );
    const timer = clock.setTimer(options.connectTimeoutMs, () => this.#broken(stream, 'the handshake took too long'));
    this.#state = { at: 'dialling', address, stream, timer };
  }

  #answered(stream: FrameStream, hello: Hello): void {
    const state = this.#state;
    if (state.at !== 'dialling' || state.stream !== stream) return;
    const { local, verifyAnswer, logger } = this.#context;
    const refusal = checkAnswer(hello, local, this.#node, (peer) => verifyAnswer(peer, stream.peerCertificate));
    if (refusal !== undefined) return this.#broken(stream, refusal.message, this.#context.options.refusedBackoffMs);
    state.timer.cancel();
    this.#state = { ...state, at: 'open' };
    this.#failures = 0;
    this.#answeredAt = state.address;
    this.#checksLeft = 0;
    this.#refusing = false;
    logger.info({ peer: this.#node }, 'connected to a peer');
    for (const frame of this.#queue) stream.send(frame);
    this.#forgetQueue();
  }

  #ended(stream: FrameStream, end: StreamEnd): void {
    const refusal = refusalOf(end);
    if (end.connectionRefused === true && this.#isCurrent(stream)) this.#connectionRefused();
    // A peer that is stopping, or has a newer stream from this node, does not refuse it.
    if (refusal === undefined || refusal.code === 'UNAVAILABLE') return this.#broken(stream, end.message);
    if (!this.#isCurrent(stream)) return;
    this.#broken(stream, refusal.message, this.#context.options.refusedBackoffMs);
    this.#context.onRefused(this.#node, refusal);
  }

  #broken(stream: FrameStream, reason: string, pauseMs?: number): void {
    const state = this.#state;
    if ((state.at !== 'dialling' && state.at !== 'open') || state.stream !== stream) return;
    const firstFailure = this.#failures === 0;
    const hadFrames = state.at === 'open' || this.#queue.length > 0;
    release(state);
    this.#forgetQueue();
    if (state.at === 'open') this.#checksLeft = CHECKS_MAX;
    const soonMs = state.at === 'open' ? CHECK_MS : this.#backoffMs();
    this.#pause(pauseMs ?? soonMs);
    const { logger, onUnreached } = this.#context;
    if (state.at === 'dialling') onUnreached(this.#node, state.address);
    if (firstFailure) logger.warn({ peer: this.#node, reason }, 'no connection to a peer');
    if (hadFrames) this.#lost(); // P3
  }

  #isCurrent(stream: FrameStream): boolean {
    return (this.#state.at === 'dialling' || this.#state.at === 'open') && this.#state.stream === stream;
  }

  /** P4. */
  #connectionRefused(): void {
    const state = this.#state;
    if (state.at !== 'dialling' || state.address !== this.#answeredAt) return;
    this.#answeredAt = undefined;
    this.#checksLeft = 0;
    this.#refusing = true;
    this.#context.onRefusing(this.#node);
  }

  #pause(delayMs: number): void {
    this.#failures++;
    const timer = this.#context.clock.setTimer(delayMs, () => {
      this.#state = { at: 'idle' }; // the next frame dials: an unused peer costs nothing
      if (this.#checksLeft === 0) return;
      this.#checksLeft--;
      this.#dial(); // P4
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

  /** Returns the frame's size; 0 if it was dropped. */
  #sendFrame(encode: () => Buffer): number {
    const { options, traffic } = this.#context;
    const state = this.#state;
    const pendingBytes = state.at === 'open' ? state.stream.pendingBytes : this.#queuedBytes;
    if (pendingBytes > options.queueBytesMax) {
      traffic.dropped++;
      this.#overflow(pendingBytes);
      return 0;
    }
    this.#overflowing = false;
    const frame = encode();
    if (state.at === 'open') state.stream.send(frame);
    else {
      this.#queue.push(frame);
      this.#queuedBytes += frame.length;
    }
    traffic.frames++;
    traffic.bytes += frame.length;
    return frame.length;
  }

  #overflow(bytes: number): void {
    if (this.#overflowing) return;
    this.#overflowing = true;
    this.#context.logger.warn({ peer: this.#node, bytes }, 'a peer is too slow: dropping frames');
    this.#lost(); // P3
  }

  #forgetQueue(): void {
    this.#queue = [];
    this.#queuedBytes = 0;
    this.#overflowing = false;
  }
}

function release({ stream, timer }: { readonly stream: FrameStream; readonly timer: Timer }): void {
  timer.cancel();
  stream.destroy();
}

/** Divides a turn's messages into frames of bounded size; nearly always it is one. */
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
