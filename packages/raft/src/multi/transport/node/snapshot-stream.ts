/**
 * Snapshots between nodes: each stream of a transfer has a connection of its own, so that bulk data never delays Raft
 * messages. Nothing is sent on it before the peer's hello (handshake.ts K1).
 */
import { dialFrames, type FrameStream, type Hello, type StreamEnd, type Timer } from '@remora/base';
import type { NodeId } from '../../ports.ts';
import type { IncomingSnapshots } from '../snapshot-incoming.ts';
import type { SnapshotLink, SnapshotLinkEvents } from '../snapshot-outgoing.ts';
import type { PeerContext } from './frame-peer.ts';
import { checkAnswer, helloOf, refusalOf, SNAPSHOT_SERVICE } from './handshake.ts';
import { streamOptions } from './transport-options.ts';

/** Begins a stream to `node`. */
export function dialSnapshot(context: PeerContext, node: NodeId, events: SnapshotLinkEvents): SnapshotLink {
  const address = context.resolveAddress(node);
  if (address !== undefined) return new StreamSnapshotLink(context, node, address, events);
  context.clock.setImmediate(() => events.broken(`the address of node ${node} is unknown`));
  return { send: () => undefined, close: () => undefined };
}

class StreamSnapshotLink implements SnapshotLink {
  readonly #context: PeerContext;
  readonly #events: SnapshotLinkEvents;
  readonly #stream: FrameStream;
  readonly #timer: Timer;
  /** Messages for a peer whose hello has not arrived yet: the opening, and perhaps an abort. */
  #waiting: Buffer[] | undefined = [];

  constructor(context: PeerContext, node: NodeId, address: string, events: SnapshotLinkEvents) {
    const { clock, options, local, connector } = context;
    this.#context = context;
    this.#events = events;
    this.#stream = dialFrames(
      address,
      helloOf(local, SNAPSHOT_SERVICE),
      { ...streamOptions(options, clock), connector },
      {
        onHello: (hello) => this.#greeted(node, hello),
        onFrame: (message) => events.message(message),
        onDrain: () => undefined,
        onEnd: (end) => this.#ended(end),
      },
    );
    this.#timer = clock.setTimer(options.connectTimeoutMs, () => this.#broken('the handshake took too long'));
  }

  send(message: Buffer): void {
    if (this.#waiting !== undefined) this.#waiting.push(message);
    else this.#stream.send(message);
  }

  close(last?: Buffer): void {
    this.#timer.cancel();
    if (last === undefined || this.#waiting !== undefined) return this.#stream.destroy();
    this.#stream.send(last);
    this.#stream.end();
  }

  #greeted(node: NodeId, answer: Hello): void {
    const { local, verifyAnswer } = this.#context;
    const refusal = checkAnswer(answer, local, node, (peer) => verifyAnswer(peer, this.#stream.peerCertificate));
    if (refusal !== undefined) return this.#broken(refusal.message, true);
    this.#timer.cancel();
    for (const message of this.#waiting ?? []) this.#stream.send(message);
    this.#waiting = undefined;
  }

  #ended(end: StreamEnd): void {
    this.#timer.cancel();
    const refusal = refusalOf(end);
    // A peer that is stopping does not refuse; it may return in time.
    this.#events.broken(end.message, refusal !== undefined && refusal.code !== 'UNAVAILABLE');
  }

  #broken(reason: string, final = false): void {
    this.#timer.cancel();
    this.#stream.destroy();
    this.#events.broken(reason, final);
  }
}

/** Passes a verified peer's stream to the node's transfers; `over` is called when the stream ends. */
export function receiveSnapshotStream(
  stream: FrameStream,
  from: NodeId,
  transfers: IncomingSnapshots,
  over: () => void,
): void {
  const incoming = transfers.accept(from, {
    send: (message) => {
      stream.send(message);
    },
    end: (message) => {
      stream.end({ message });
      over();
    },
  });
  stream.handle({
    // The window bounds the data that is not taken yet (snapshot-incoming.ts I4).
    onFrame: (message) => incoming.message(message),
    onDrain: () => undefined,
    onEnd: () => {
      incoming.broken();
      over();
    },
  });
}
