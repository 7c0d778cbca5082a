/**
 * A network inside one process: the transport of tests and of the simulator.
 *
 * N1. The behaviour depends only on the clock and the seeded random generator: one seed, one run.
 * N2. Frames go through the real codec, so nodes never share an object, and a value that the encoding loses is noticed.
 * N3. Between two nodes frames keep their order, unless the link has `reorder` set; each link has its own faults, per
 *     direction, so that one-way and bridged partitions can be built.
 * N4. A node that is detached refuses connections: nodes that would reach it, and that it would reach, learn soon that
 *     it is gone, unless it is back by then. A link that is blocked or loses everything is silent, unless it `refuses`:
 *     then both ends believe that the other is gone, as behind a firewall that rejects connections.
 */
import { assert, type Clock, copyBytes, joinSignals, type Random } from '@remora/base';
import type {
  GroupMessage,
  HeartbeatFrame,
  NodeId,
  SnapshotHeader,
  Transport,
  TransportHandlers,
} from '../multi/ports.ts';
import { encodeFrame } from '../multi/transport/codec.ts';
import { HeartbeatEncoder } from '../multi/transport/heartbeat-codec.ts';
import { IncomingFrames } from '../multi/transport/incoming-frames.ts';
import { type OutgoingContext, sendOverLinks } from '../multi/transport/snapshot-outgoing.ts';
import {
  newTraffic,
  type SnapshotTraffic,
  type SnapshotTransferOptions,
  snapshotTransferOptions,
} from '../multi/transport/snapshot-transfer.ts';
import { LocalSnapshots, type SnapshotTap } from './local-snapshots.ts';

/** The behaviour of one direction between two nodes. Shares are in thousandths of the frames. */
export interface LinkFaults {
  /** Nothing passes. */
  readonly blocked: boolean;
  /** Nothing passes, and connections in either direction are refused (N4). */
  readonly refuses: boolean;
  readonly dropPerMille: number;
  readonly duplicatePerMille: number;
  /** Delay of each frame: `delayMs` plus up to `jitterMs`. */
  readonly delayMs: number;
  readonly jitterMs: number;
  /** Frames may overtake each other. */
  readonly reorder: boolean;
  /** Share of the messages of snapshot streams that break the stream. */
  readonly snapshotBreakPerMille: number;
}

const HEALTHY: LinkFaults = {
  blocked: false,
  refuses: false,
  dropPerMille: 0,
  duplicatePerMille: 0,
  delayMs: 0,
  jitterMs: 0,
  reorder: false,
  snapshotBreakPerMille: 0,
};

/** From the end of a process until the others know: they dial its address, and are refused. */
const REFUSED_MS = 8;

interface Link {
  faults: LinkFaults;
  /** No frame is delivered before this moment, which keeps order under jitter (N3). */
  earliestMs: number;
  reachable: boolean;
  incoming?: IncomingFrames;
}

export class LocalNetwork {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #defaults: LinkFaults;
  readonly #links = new Map<string, Link>();
  readonly #nodes = new Map<NodeId, TransportHandlers>();
  readonly #snapshots: LocalSnapshots;
  readonly #snapshotOptions: SnapshotTransferOptions;
  readonly #traffic = newTraffic();
  #frames = 0;

  constructor(options: {
    readonly clock: Clock;
    readonly random: Random;
    readonly faults?: Partial<LinkFaults>;
    readonly snapshots?: Partial<SnapshotTransferOptions>;
  }) {
    this.#clock = options.clock;
    this.#random = options.random;
    this.#defaults = { ...HEALTHY, ...options.faults };
    this.#snapshotOptions = snapshotTransferOptions(options.snapshots);
    this.#snapshots = new LocalSnapshots({
      clock: this.#clock,
      options: this.#snapshotOptions,
      traffic: this.#traffic,
      delayMs: (from, to) => this.#link(from, to).faults.delayMs,
      passes: (from, to) => this.#passes(from, to),
      breaks: (from, to) => this.#chance(this.#link(from, to).faults.snapshotBreakPerMille),
    });
  }

  /** Returns a node's end of the network. A restarted node under the same id replaces its predecessor. */
  transport(node: NodeId): Transport {
    return new LocalTransport(this, node);
  }

  /** Frames handed to receivers so far. */
  get framesDelivered(): number {
    return this.#frames;
  }

  setLink(link: { readonly from: NodeId; readonly to: NodeId }, faults: Partial<LinkFaults>): void {
    const state = this.#link(link.from, link.to);
    const refusedBefore = state.faults.refuses;
    state.faults = { ...state.faults, ...faults };
    const { from, to } = link;
    if (state.faults.refuses && !refusedBefore && this.#link(to, from).faults.refuses) {
      this.#refusedSoon(from, to);
      this.#refusedSoon(to, from);
    }
    if (!isClosed(state.faults)) return;
    // An answer cannot pass in either direction: such a stream is over.
    this.#snapshots.breakStreams(
      (stream) => (stream.from === from && stream.to === to) || (stream.from === to && stream.to === from),
    );
  }

  /** Counters of all snapshots on this network. */
  get snapshotTraffic(): Readonly<SnapshotTraffic> {
    return this.#traffic;
  }

  /** Calls `tap` for each message of snapshot streams; it may break the stream there. Undefined removes the tap. */
  tapSnapshots(tap: SnapshotTap | undefined): void {
    this.#snapshots.tap = tap;
  }

  /** Breaks the snapshot streams that are open between two nodes, or all. */
  breakSnapshots(ends?: { readonly from: NodeId; readonly to: NodeId }): void {
    this.#snapshots.breakStreams(
      (stream) => ends === undefined || (stream.from === ends.from && stream.to === ends.to),
    );
  }

  /** Nodes of different sides cannot reach each other; a node named in no side is on its own. */
  partition(...sides: readonly (readonly NodeId[])[]): void {
    const sideOf = (node: NodeId) => sides.findIndex((side) => side.includes(node));
    const nodes = new Set([...this.#nodes.keys(), ...sides.flat()]);
    for (const from of nodes) {
      for (const to of nodes) {
        if (from === to) continue;
        this.setLink({ from, to }, { blocked: sideOf(from) === -1 || sideOf(from) !== sideOf(to) });
      }
    }
  }

  /** Makes every link healthy (as first configured) again. */
  heal(): void {
    for (const link of this.#links.values()) link.faults = this.#defaults;
  }

  /** @internal */
  attach(node: NodeId, handlers: TransportHandlers): void {
    this.#nodes.set(node, handlers);
    this.#snapshots.attach(node, handlers);
  }

  /** @internal */
  detach(node: NodeId, handlers: TransportHandlers): void {
    if (this.#nodes.get(node) !== handlers) return;
    this.#nodes.delete(node);
    this.#snapshots.detach(node);
    for (const other of this.#nodes.keys()) this.#refusedSoon(other, node);
  }

  /** `node` dials `peer`: if it is refused, the peer is gone for it (N4). */
  #refusedSoon(node: NodeId, peer: NodeId): void {
    const handlers = this.#nodes.get(node);
    const there = this.#link(node, peer);
    const back = this.#link(peer, node);
    this.#clock.setTimer(REFUSED_MS + there.faults.delayMs + back.faults.delayMs, () => {
      if (handlers === undefined || !this.attached(node, handlers)) return;
      const refused = there.faults.refuses && back.faults.refuses;
      if (refused || (!this.#nodes.has(peer) && isHeard(there.faults) && isHeard(back.faults))) handlers.onGone(peer);
    });
  }

  /** @internal Whether `handlers` are still those of `node`. */
  attached(node: NodeId, handlers: TransportHandlers): boolean {
    return this.#nodes.get(node) === handlers;
  }

  /** @internal */
  deliver(from: NodeId, to: NodeId, frame: Uint8Array): void {
    const { faults } = this.#link(from, to);
    if (!this.#passes(from, to) || this.#chance(faults.dropPerMille)) return;
    this.#schedule(from, to, frame);
    if (this.#chance(faults.duplicatePerMille)) this.#schedule(from, to, frame);
  }

  /** @internal How `from` sends a snapshot to `to`. */
  outgoing(from: NodeId, to: NodeId): OutgoingContext {
    return {
      clock: this.#clock,
      random: this.#random,
      options: this.#snapshotOptions,
      traffic: this.#traffic,
      dial: (events) => this.#snapshots.dial(from, to, events),
    };
  }

  #schedule(from: NodeId, to: NodeId, frame: Uint8Array): void {
    const link = this.#link(from, to);
    const { delayMs, jitterMs, reorder } = link.faults;
    const now = this.#clock.monotonicMs();
    const jitter = jitterMs > 0 ? this.#random.int(Math.ceil(jitterMs) + 1) : 0;
    const at = reorder ? now + delayMs + jitter : Math.max(now + delayMs + jitter, link.earliestMs);
    if (!reorder) link.earliestMs = at;
    const arrive = () => {
      const receiver = this.#nodes.get(to);
      if (receiver === undefined || isClosed(link.faults)) return;
      this.#frames++;
      if (link.incoming?.handlers !== receiver) link.incoming = new IncomingFrames(from, receiver);
      link.incoming.take(copyBytes(frame));
    };
    if (at > now) this.#clock.setTimer(at - now, arrive);
    else this.#clock.setImmediate(arrive);
  }

  /** Whether a frame can leave now; notifies the sender when that becomes false. */
  #passes(from: NodeId, to: NodeId): boolean {
    const link = this.#link(from, to);
    const open = this.#nodes.has(to) && !isClosed(link.faults);
    if (link.reachable && !open) {
      const sender = this.#nodes.get(from);
      this.#clock.setImmediate(() => sender !== undefined && this.attached(from, sender) && sender.onUnreachable(to));
    }
    link.reachable = open;
    return open;
  }

  #chance(perMille: number): boolean {
    return perMille > 0 && this.#random.int(1000) < perMille;
  }

  #link(from: NodeId, to: NodeId): Link {
    const key = `${from}>${to}`;
    let link = this.#links.get(key);
    if (link === undefined) {
      link = { faults: this.#defaults, earliestMs: 0, reachable: true };
      this.#links.set(key, link);
    }
    return link;
  }
}

function isClosed({ blocked, refuses }: LinkFaults): boolean {
  return blocked || refuses;
}

/** Whether an attempt to connect gets an answer. */
function isHeard(faults: LinkFaults): boolean {
  return !isClosed(faults) && faults.dropPerMille < 1_000;
}

class LocalTransport implements Transport {
  readonly #network: LocalNetwork;
  readonly #node: NodeId;
  readonly #heartbeats = new Map<NodeId, HeartbeatEncoder>();
  readonly #stopped = new AbortController();
  #handlers: TransportHandlers | undefined;

  constructor(network: LocalNetwork, node: NodeId) {
    this.#network = network;
    this.#node = node;
  }

  start(handlers: TransportHandlers): void {
    assert(this.#handlers === undefined, 'a transport starts once');
    this.#handlers = handlers;
    this.#network.attach(this.#node, handlers);
  }

  send(node: NodeId, messages: readonly GroupMessage[]): void {
    if (this.#running()) this.#network.deliver(this.#node, node, encodeFrame(messages));
  }

  sendHeartbeat(node: NodeId, frame: HeartbeatFrame): void {
    if (!this.#running()) return;
    let encoder = this.#heartbeats.get(node);
    if (encoder === undefined) {
      encoder = new HeartbeatEncoder();
      this.#heartbeats.set(node, encoder);
    }
    this.#network.deliver(this.#node, node, encoder.encode(frame));
  }

  sendSnapshot(
    node: NodeId,
    header: SnapshotHeader,
    chunks: AsyncIterable<Uint8Array>,
    signal: AbortSignal,
    resumed?: () => void,
  ): Promise<void> {
    const context = this.#network.outgoing(this.#node, node);
    const either = joinSignals([signal, this.#stopped.signal]);
    return sendOverLinks(context, { header, chunks, signal: either.signal, resumed }).finally(either.letGo);
  }

  async stop(): Promise<void> {
    this.#stopped.abort(new Error('the transport is stopped'));
    if (this.#handlers !== undefined) this.#network.detach(this.#node, this.#handlers);
  }

  #running(): boolean {
    return this.#handlers !== undefined && this.#network.attached(this.#node, this.#handlers);
  }
}
