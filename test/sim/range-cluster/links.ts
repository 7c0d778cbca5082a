import { type SeededRandom, ServiceError } from '@remora/base';
import type { ManualClock } from '@remora/base/testing';
import { createRpcRegistry, type FrameLink, serveLink } from '@remora/protocol';
import { createMemoryLink, type MemoryLinkPair } from '@remora/protocol/testing';
import type { Transport } from '@remora/raft';
import type { LocalNetwork } from '@remora/raft/testing';
import type { ProcessClock } from './node-clock.ts';
import type { SimNode } from './sim-node.ts';

interface Link {
  readonly from: number;
  readonly to: number;
  readonly pair: MemoryLinkPair;
  stalled: boolean;
}

export interface LinksDeps {
  readonly clock: ManualClock;
  readonly random: SeededRandom;
  /** Carries Raft's messages. */
  readonly network: LocalNetwork;
  readonly node: (id: number) => SimNode;
}

/** The connections between nodes: links for calls, and the network of Raft. They fail on command. */
export class Links {
  readonly #deps: LinksDeps;
  readonly #links = new Set<Link>();
  #cut: ReadonlySet<number> = new Set();

  constructor(deps: LinksDeps) {
    this.#deps = deps;
  }

  /** Cuts nodes off from the others. Open links carry nothing until the partition ends. */
  partition(cut: readonly number[], all: readonly number[]): void {
    this.#cut = new Set(cut);
    this.#deps.network.partition(
      all.filter((id) => this.#cut.has(id)),
      all.filter((id) => !this.#cut.has(id)),
    );
    for (const link of this.#links) {
      if (!this.#divided(link.from, link.to)) continue;
      link.stalled = true;
      link.pair.stall(true);
    }
  }

  heal(): void {
    this.#cut = new Set();
    this.#deps.network.heal();
    for (const link of [...this.#links]) {
      if (!link.stalled) continue;
      link.stalled = false;
      // Either the connection was given up meanwhile, or its content arrives late.
      if (this.#deps.random.int(2) === 0) this.#sever(link);
      else link.pair.stall(false);
    }
  }

  /** Breaks a link, and loses everything in transit on it. */
  breakSome(): void {
    const links = [...this.#links];
    const link = links[this.#deps.random.int(Math.max(1, links.length))];
    if (link !== undefined) this.#sever(link);
  }

  /** Breaks all links of a node. */
  breakAllOf(id: number): void {
    for (const link of [...this.#links]) if (link.from === id || link.to === id) this.#sever(link);
  }

  #divided(a: number, b: number): boolean {
    return this.#cut.has(a) !== this.#cut.has(b);
  }

  #sever(link: Link): void {
    this.#links.delete(link);
    link.pair.sever();
  }

  connect(from: number, to: number): FrameLink {
    const pair = createMemoryLink(this.#deps.clock);
    const link: Link = { from, to, pair, stalled: false };
    const target = this.#deps.node(to);
    const reachable = target.running !== undefined && !this.#divided(from, to);
    if (reachable) {
      this.#links.add(link);
      serveLink({
        link: bound(pair.server, target.clock),
        registry: target.running?.registry ?? createRpcRegistry(),
        clock: target.clock,
        caller: { kind: 'node', nodeId: from },
      });
      return bound(pair.client, this.#deps.node(from).clock);
    }
    return refusing(this.#deps.node(from).clock);
  }

  transport(id: number): Transport {
    const inner = this.#deps.network.transport(id);
    const enter = this.#deps.node(id).clock.door();
    return {
      start: (handlers) =>
        inner.start({
          onMessages: (from, messages) => enter(() => handlers.onMessages(from, messages)),
          onHeartbeat: (from, frame) => enter(() => handlers.onHeartbeat(from, frame)),
          onSnapshot: (from, header) => handlers.onSnapshot(from, header),
          onUnreachable: (node) => enter(() => handlers.onUnreachable(node)),
          onGone: (node) => enter(() => handlers.onGone(node)),
        }),
      send: (node, messages) => inner.send(node, messages),
      sendHeartbeat: (node, frame) => inner.sendHeartbeat(node, frame),
      sendSnapshot: (node, header, chunks, signal, resumed) =>
        inner.sendSnapshot(node, header, chunks, signal, resumed),
      stop: () => inner.stop(),
    };
  }
}

/** A link that delivers to a process only while the process runs. */
function bound(link: FrameLink, clock: ProcessClock): FrameLink {
  const enter = clock.door();
  return {
    start: (receiver) =>
      link.start({
        onOpen: () => enter(() => receiver.onOpen()),
        onFrame: (frame) => enter(() => receiver.onFrame(frame)),
        onDrain: () => enter(() => receiver.onDrain()),
        onClose: (error) => enter(() => receiver.onClose(error)),
      }),
    send: (frame) => link.send(frame),
    close: (reason) => link.close(reason),
  };
}

function refusing(clock: ProcessClock): FrameLink {
  return {
    start(receiver) {
      clock.setTimer(1, () => receiver.onClose(new ServiceError('UNAVAILABLE', 'connection refused')));
    },
    send: () => true,
    close() {},
  };
}
