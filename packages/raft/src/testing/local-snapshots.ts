/**
 * Snapshot streams of the network inside one process.
 *
 * V1. A stream is reliable and in order while it lasts, and ends for both sides: when its link is blocked in either
 *     direction, when one of its nodes goes away, or by a fault. Messages in transit are then lost.
 * V2. Messages go through the real encoding; nothing is shared between nodes.
 */
import { assert, type Clock, copyBytes } from '@remora/base';
import type { NodeId, TransportHandlers } from '../multi/ports.ts';
import { IncomingSnapshots, type IncomingStream } from '../multi/transport/snapshot-incoming.ts';
import {
  decodeReceiverMessage,
  decodeSenderMessage,
  type ReceiverMessage,
  type SenderMessage,
} from '../multi/transport/snapshot-messages.ts';
import type { SnapshotLink, SnapshotLinkEvents } from '../multi/transport/snapshot-outgoing.ts';
import type { SnapshotTraffic, SnapshotTransferOptions } from '../multi/transport/snapshot-transfer.ts';

/** A message in transit, as a tap sees it. */
export type TappedSnapshotMessage = {
  readonly from: NodeId;
  readonly to: NodeId;
} & (
  | { readonly says: 'sender'; readonly message: SenderMessage }
  | { readonly says: 'receiver'; readonly message: ReceiverMessage }
);

/** Sees each message that is sent; with `break` the message is lost and its stream ends. */
export type SnapshotTap = (message: TappedSnapshotMessage) => 'pass' | 'break';

export interface LocalSnapshotsContext {
  readonly clock: Clock;
  readonly options: SnapshotTransferOptions;
  readonly traffic: SnapshotTraffic;
  /** Time that a message takes. */
  readonly delayMs: (from: NodeId, to: NodeId) => number;
  /** Whether a message passes now. */
  readonly passes: (from: NodeId, to: NodeId) => boolean;
  /** Whether a random fault ends a stream with the next message. */
  readonly breaks: (from: NodeId, to: NodeId) => boolean;
}

export class LocalSnapshots {
  readonly #context: LocalSnapshotsContext;
  readonly #transfers = new Map<NodeId, IncomingSnapshots>();
  readonly #streams = new Set<LocalStream>();
  tap: SnapshotTap | undefined;

  constructor(context: LocalSnapshotsContext) {
    this.#context = context;
  }

  get context(): LocalSnapshotsContext {
    return this.#context;
  }

  attach(node: NodeId, handlers: TransportHandlers): void {
    this.detach(node);
    const { clock, options, traffic } = this.#context;
    const onSnapshot: TransportHandlers['onSnapshot'] = (from, header) => handlers.onSnapshot(from, header);
    this.#transfers.set(node, new IncomingSnapshots({ clock, options, traffic, onSnapshot }));
  }

  detach(node: NodeId): void {
    this.#transfers.get(node)?.stop('the node is stopping');
    this.#transfers.delete(node);
    this.breakStreams((stream) => stream.from === node || stream.to === node);
  }

  dial(from: NodeId, to: NodeId, events: SnapshotLinkEvents): SnapshotLink {
    const stream = new LocalStream(this, { from, to }, events);
    this.#streams.add(stream);
    return stream;
  }

  breakStreams(which: (stream: { readonly from: NodeId; readonly to: NodeId }) => boolean): void {
    for (const stream of [...this.#streams]) if (which(stream)) stream.break('the connection was lost');
  }

  transfersOf(node: NodeId): IncomingSnapshots | undefined {
    return this.#transfers.get(node);
  }

  over(stream: LocalStream): void {
    this.#streams.delete(stream);
  }
}

type Side = 'sender' | 'receiver';

class LocalStream implements SnapshotLink {
  readonly from: NodeId;
  readonly to: NodeId;
  readonly #network: LocalSnapshots;
  readonly #events: SnapshotLinkEvents;
  /** No message of that side arrives before this moment: this keeps the order when delays change (V1). */
  readonly #earliestMs: Record<Side, number> = { sender: 0, receiver: 0 };
  #incoming: IncomingStream | undefined;
  #over = false;
  /** The sender has closed and receives nothing more. */
  #closed = false;

  constructor(
    network: LocalSnapshots,
    ends: { readonly from: NodeId; readonly to: NodeId },
    events: SnapshotLinkEvents,
  ) {
    this.#network = network;
    this.from = ends.from;
    this.to = ends.to;
    this.#events = events;
  }

  send(message: Buffer): void {
    if (!this.#closed) this.#carry('sender', message, (bytes) => this.#arrive(bytes));
  }

  close(last?: Buffer): void {
    if (this.#closed) return;
    if (last !== undefined) this.send(last);
    this.#closed = true;
    this.#later('sender', () => this.#finish());
  }

  /** Ends the stream for both sides. */
  break(reason: string): void {
    if (this.#over) return;
    const closed = this.#closed;
    const incoming = this.#incoming;
    this.#end();
    this.#network.context.clock.setImmediate(() => {
      if (!closed) this.#events.broken(reason);
      incoming?.broken();
    });
  }

  #arrive(bytes: Buffer): void {
    const transfers = this.#network.transfersOf(this.to);
    assert(transfers !== undefined, 'V1: streams of a node that is gone are broken');
    this.#incoming ??= transfers.accept(this.from, {
      send: (answer) => this.#carry('receiver', answer, (copy) => this.#tell(() => this.#events.message(copy))),
      end: (reason) =>
        this.#later('receiver', () => {
          this.#tell(() => this.#events.broken(reason));
          this.#end();
        }),
    });
    this.#incoming.message(bytes);
  }

  #tell(news: () => void): void {
    if (!this.#closed) news();
  }

  /** The sender's closing has arrived. */
  #finish(): void {
    const incoming = this.#incoming;
    this.#end();
    incoming?.broken();
  }

  #end(): void {
    this.#over = true;
    this.#network.over(this);
  }

  #carry(side: Side, message: Buffer, deliver: (copy: Buffer) => void): void {
    if (this.#over) return;
    const { tap, context } = this.#network;
    const [from, to] = side === 'sender' ? [this.from, this.to] : [this.to, this.from];
    if (context.breaks(from, to) || tap?.(tapped(side, from, to, message)) === 'break') {
      return this.break('the connection was lost');
    }
    const copy = copyBytes(message); // V2
    this.#later(side, () => deliver(copy));
  }

  #later(side: Side, act: () => void): void {
    const { clock, delayMs, passes } = this.#network.context;
    const [from, to] = side === 'sender' ? [this.from, this.to] : [this.to, this.from];
    const now = clock.monotonicMs();
    const at = Math.max(now + delayMs(from, to), this.#earliestMs[side]);
    this.#earliestMs[side] = at;
    const run = () => {
      if (this.#over) return;
      if (!passes(from, to)) return this.break(`node ${this.to} is unreachable`);
      act();
    };
    if (at > now) clock.setTimer(at - now, run);
    else clock.setImmediate(run);
  }
}

function tapped(says: Side, from: NodeId, to: NodeId, bytes: Buffer): TappedSnapshotMessage {
  return says === 'sender'
    ? { from, to, says, message: decodeSenderMessage(bytes) }
    : { from, to, says, message: decodeReceiverMessage(bytes) };
}
