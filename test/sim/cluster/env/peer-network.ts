/**
 * The streams of Raft between nodes: what machines send each other passes only between nodes that take each other for
 * who they say they are, as the handshake of real streams has it (`transport/node/handshake.ts`).
 *
 * H1. A machine has an id of its own. Which node runs on it may change: one that lost its disk runs another one.
 * H2. A node reaches another by its address, as far as it knows that, and only if that very node runs there.
 * H3. Both ends check who the other is, once for each pair of processes, when something can pass between them. Whoever
 *     is refused is told by whom and why.
 */
import { ServiceError } from '@remora/base';
import { incarnationDigest } from '@remora/protocol';
import type { NodeId, Transport } from '@remora/raft';
import type { LinkFaults } from '@remora/raft/testing';
import type { PeersDeps } from '../../../../packages/cli/src/node/platform.ts';
import type { LocalNetwork } from '../../../../packages/raft/src/testing/local-network.ts';

/** One life of a node. */
export interface PeerNode extends PeersDeps {
  readonly machine: number;
  readonly address: string;
  /** Into its process. */
  readonly door: (fn: () => void) => void;
}

export class PeerNetwork {
  readonly #network: LocalNetwork;
  readonly #faultsOf: (from: number, to: number) => LinkFaults;
  /** What ran last on each machine. */
  readonly #byMachine = new Map<number, PeerNode>();
  /** What runs now. */
  readonly #byAddress = new Map<string, PeerNode>();
  readonly #met = new WeakMap<PeerNode, WeakSet<PeerNode>>();

  constructor(network: LocalNetwork, faultsOf: (from: number, to: number) => LinkFaults) {
    this.#network = network;
    this.#faultsOf = faultsOf;
  }

  /** A node's end of the network. It takes the place of whatever ran on that machine before. */
  open(node: PeerNode): Transport {
    this.#byMachine.set(node.machine, node);
    this.#byAddress.set(node.address, node);
    this.#met.set(node, new WeakSet());
    const inner = this.#network.transport(node.machine);
    const sender = (machine: number): NodeId => this.#byMachine.get(machine)?.self.nodeId ?? 0;
    return {
      start: (handlers) =>
        inner.start({
          onMessages: (from, messages) => handlers.onMessages(sender(from), messages),
          onHeartbeat: (from, frame) => handlers.onHeartbeat(sender(from), frame),
          onSnapshot: (from, header) => handlers.onSnapshot(sender(from), header),
          onUnreachable: (machine) => handlers.onUnreachable(sender(machine)),
        }),
      send: (to, messages) => this.#toward(node, to, (machine) => inner.send(machine, messages)),
      sendHeartbeat: (to, frame) => this.#toward(node, to, (machine) => inner.sendHeartbeat(machine, frame)),
      sendSnapshot: async (to, header, chunks, signal, resumed) => {
        const peer = this.#peer(node, to);
        if (peer === undefined) throw new Error(`node ${to} cannot be reached`);
        return inner.sendSnapshot(peer.machine, header, chunks, signal, resumed);
      },
      stop: () => {
        if (this.#byAddress.get(node.address) === node) this.#byAddress.delete(node.address);
        return inner.stop();
      },
    };
  }

  #toward(node: PeerNode, to: NodeId, send: (machine: number) => void): void {
    const peer = this.#peer(node, to);
    if (peer !== undefined) send(peer.machine);
  }

  /** The process of a node, if both take each other (H2, H3). */
  #peer(node: PeerNode, to: NodeId): PeerNode | undefined {
    const address = node.resolveAddress(to);
    const peer = address === undefined ? undefined : this.#byAddress.get(address);
    if (peer === undefined || peer.self.nodeId !== to) return undefined;
    const met = this.#met.get(node);
    if (met?.has(peer) === true) return peer;
    if (!this.#open(node, peer) || !this.#open(peer, node)) return undefined;
    if (!takes(peer, node)) return undefined;
    const { nodeId, incarnation } = peer.self;
    if (node.verify({ nodeId, digest: incarnationDigest(incarnation), wanted: true }) !== undefined) return undefined;
    met?.add(peer);
    node.onMet();
    peer.door(() => peer.onMet());
    return peer;
  }

  #open(from: PeerNode, to: PeerNode): boolean {
    const { blocked, dropPerMille } = this.#faultsOf(from.machine, to.machine);
    return !blocked && dropPerMille < 1_000;
  }
}

/** Whether `one` takes the calling `other`, which hears of a refusal; not of one that does not last. */
function takes(one: PeerNode, other: PeerNode): boolean {
  const { self } = other;
  const caller = self.clusterId === one.self.clusterId ? one.identify(self) : WRONG_CLUSTER;
  if (caller instanceof ServiceError) other.door(() => other.onRefused(one.self.nodeId, caller));
  return !(caller instanceof ServiceError) && caller.kind === 'node';
}

const WRONG_CLUSTER = new ServiceError('WRONG_CLUSTER', 'not the same cluster');
