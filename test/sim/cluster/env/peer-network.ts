/**
 * The streams of Raft between nodes: messages between machines pass only between nodes that accept each other's
 * identity, as in the handshake of real streams (`transport/node/handshake.ts`).
 *
 * H1. A machine has an id of its own. The node on it may change: a machine that lost its disk runs another node.
 * H2. A node reaches another by its known address, and only if that very node runs there.
 * H3. Both ends check the identity of the other, once for each pair of processes, when something can pass between them.
 *     A refused node learns the refusing node and the reason.
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
  /** Enters its process. */
  readonly door: (fn: () => void) => void;
}

export class PeerNetwork {
  readonly #network: LocalNetwork;
  readonly #faultsOf: (from: number, to: number) => LinkFaults;
  /** The last process on each machine. */
  readonly #byMachine = new Map<number, PeerNode>();
  /** The running processes. */
  readonly #byAddress = new Map<string, PeerNode>();
  readonly #met = new WeakMap<PeerNode, WeakSet<PeerNode>>();

  constructor(network: LocalNetwork, faultsOf: (from: number, to: number) => LinkFaults) {
    this.#network = network;
    this.#faultsOf = faultsOf;
  }

  /** A node's end of the network. It replaces whatever ran on that machine before. */
  open(node: PeerNode): Transport {
    const before = this.#byMachine.get(node.machine);
    if (before !== undefined && this.#byAddress.get(before.address) === before) this.#byAddress.delete(before.address);
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
          onGone: (machine) => handlers.onGone(sender(machine)),
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

  /** The process of a node, if both accept each other (H2, H3). */
  #peer(node: PeerNode, to: NodeId): PeerNode | undefined {
    const address = node.resolveAddress(to);
    const peer = address === undefined ? undefined : this.#byAddress.get(address);
    if (peer === undefined || peer.self.nodeId !== to) {
      if (address !== undefined) node.onUnreached(to, address);
      return undefined;
    }
    const met = this.#met.get(node);
    if (met?.has(peer) === true) return peer;
    if (!this.#open(node, peer) || !this.#open(peer, node)) return undefined;
    if (!takes(peer, node)) return undefined;
    const { nodeId, incarnation } = peer.self;
    if (node.verify({ nodeId, digest: incarnationDigest(incarnation), wanted: true }) !== undefined) return undefined;
    met?.add(peer);
    node.onMet(peer.self);
    peer.door(() => peer.onMet(node.self));
    return peer;
  }

  #open(from: PeerNode, to: PeerNode): boolean {
    const { blocked, dropPerMille } = this.#faultsOf(from.machine, to.machine);
    return !blocked && dropPerMille < 1_000;
  }
}

/** Whether `one` accepts the calling `other`. `other` is notified of a refusal, except a temporary one. */
function takes(one: PeerNode, other: PeerNode): boolean {
  const { self } = other;
  const caller = self.clusterId === one.self.clusterId ? one.identify(self) : WRONG_CLUSTER;
  if (caller instanceof ServiceError) other.door(() => other.onRefused(one.self.nodeId, caller));
  return !(caller instanceof ServiceError) && caller.kind === 'node';
}

const WRONG_CLUSTER = new ServiceError('WRONG_CLUSTER', 'not the same cluster');
