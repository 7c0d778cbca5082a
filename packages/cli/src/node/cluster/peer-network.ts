/** This node's connections to the others: whom it takes them for, where they are, and the calls to them. */
import {
  type ClosableDialer,
  createDialer,
  type createRpcRegistry,
  type LinkIdentity,
  masterView,
  type NodeDescriptor,
} from '@remora/protocol';
import type { NodePlatform, Peers } from '../platform.ts';
import type { KnownCluster } from './known-cluster.ts';
import type { KnownVersion } from './known-version.ts';
import { PeerIdentities } from './peer-identities.ts';
import type { PeerRefusalPolicy } from './peer-refusal-policy.ts';

/** The time limit for the call that shows a founding member's identity. */
const IDENTITY_TIMEOUT_MS = 1_000;

export interface PeerNetworkDeps extends Pick<NodePlatform, 'clock' | 'random' | 'logger'> {
  readonly platform: NodePlatform;
  readonly self: NodeDescriptor;
  readonly clusterId: string;
  readonly versions: KnownVersion;
  readonly cluster: KnownCluster;
  readonly refusals: PeerRefusalPolicy;
  /** What other nodes call here. */
  readonly registry: ReturnType<typeof createRpcRegistry>;
  /** Requests a new view from the masters. */
  readonly askMasters: () => void;
}

export class PeerNetwork {
  readonly #deps: PeerNetworkDeps;
  readonly #identities: PeerIdentities;
  /** Founding members whose identity is being requested. */
  readonly #askedFounders = new Set<number>();
  /** The end of the network at which other nodes arrive. It accepts none before `listen`. */
  readonly peers: Peers;
  /** Calls other nodes, and this one. */
  readonly dialer: ClosableDialer;

  constructor(deps: PeerNetworkDeps) {
    this.#deps = deps;
    const { self, cluster, platform, askMasters } = deps;
    this.#identities = new PeerIdentities({
      ...{ self, askMasters },
      askFounder: (nodeId) => this.#askFounder(nodeId),
      named: (nodeId) => cluster.named(nodeId),
      registered: (nodeId) => cluster.registered(nodeId),
      hinted: (nodeId) => cluster.hinted(nodeId),
      trustDomain: () => platform.trustDomain?.(),
      isFounder: (nodeId) => cluster.isFounder(nodeId),
    });
    this.peers = this.#openPeers();
    this.dialer = this.#createDialer();
  }

  get #identity(): LinkIdentity {
    const { self, clusterId, versions } = this.#deps;
    return { clusterId, nodeId: self.nodeId, incarnation: self.incarnation, address: self.peerAddress, versions };
  }

  #openPeers(): Peers {
    const { cluster, platform, refusals } = this.#deps;
    return platform.openPeers({
      self: this.#identity,
      resolveAddress: (nodeId) => cluster.addresses.next(nodeId),
      onUnreached: (nodeId, address) => cluster.addresses.failed(nodeId, address),
      identify: (peer, certificate) => this.#identities.identify(peer, certificate),
      verify: (answer) => this.#identities.checkAnswer(answer),
      onRefused: (by, refusal) => refusals.refused(`node ${by}`, refusal),
      onMet: (peer) => {
        refusals.met();
        this.#saidBy(peer);
      },
      onNode: (peer) => this.#saidBy(peer),
    });
  }

  #createDialer(): ClosableDialer {
    const { clock, random, logger, cluster, platform, refusals, registry, self } = this.#deps;
    const identity = this.#identity;
    return createDialer({
      ...{ clock, random, logger, registry },
      localNodeId: self.nodeId,
      resolveAddress: (nodeId) => cluster.addresses.next(nodeId),
      onUnreached: (nodeId, address) => cluster.addresses.failed(nodeId, address),
      connect: (target) => {
        const by = target.nodeId === 0 ? `the node at ${target.address}` : `node ${target.nodeId}`;
        const link = platform.connect(target, identity, (answer) => {
          const refusal = this.#identities.checkAnswer(answer);
          if (this.#identities.isKnown(answer)) this.#saidBy(answer);
          return refusal;
        });
        return refusals.over(link, by);
      },
    });
  }

  /** A verified node has said where others reach it. */
  #saidBy({ nodeId, address }: { readonly nodeId: number; readonly address?: string | undefined }): void {
    if (address !== undefined) this.#deps.cluster.addresses.told(nodeId, address);
  }

  /**
   * Any call is sufficient: the node at that address identifies itself in its answer (peer-identities.ts PI2). One at a
   * time.
   */
  #askFounder(nodeId: number): void {
    if (this.#askedFounders.has(nodeId)) return;
    this.#askedFounders.add(nodeId);
    const done = (): void => void this.#askedFounders.delete(nodeId);
    this.dialer.channel(nodeId).call(masterView, undefined, { timeoutMs: IDENTITY_TIMEOUT_MS }, done);
  }
}
