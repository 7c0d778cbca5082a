/** The platform of a simulated machine: clock, network and disk are the simulator's; the first one has real sockets. */
import { type Clock, type Disk, type Engine, type Random, ServiceError, silentLogger } from '@remora/base';
import type { MetricsRegistry } from '@remora/base/node';
import { ANONYMOUS_CALLER, type RpcDispatcher, type ServedLink, serveLink } from '@remora/protocol';
import { createRaftHost, type RaftHostOptions } from '@remora/raft';
import type { EntryDeps, NodeEntry, NodePlatform, Peers, PeersDeps } from '../../../packages/cli/src/node/platform.ts';
import { Entry } from '../../../packages/cli/src/node/ports/entry.ts';
import type { NodeTls } from '../../../packages/cli/src/node/ports/node-tls.ts';
import { PortMetrics } from '../../../packages/cli/src/node/ports/port-metrics.ts';
import { openStore } from '../../../packages/dataserver/src/engine/open-store.ts';
import { OverlayEngine } from '../../../packages/dataserver/src/engine/overlay-engine.ts';
import { MemoryMedium, MemoryStore } from '../../../packages/dataserver/src/testing/memory-store.ts';
import type { LinkNetwork, Party } from '../../sim/cluster/env/link-network.ts';
import type { PeerNetwork } from '../../sim/cluster/env/peer-network.ts';
import type { SimRecords } from '../../sim/cluster/env/sim-records.ts';

export interface Networks {
  readonly links: LinkNetwork;
  readonly peers: PeerNetwork;
}

export interface MachinePlatformDeps {
  readonly machine: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly networks: Networks;
  readonly metrics: MetricsRegistry;
  readonly disk: Disk;
  readonly records: SimRecords;
  readonly addresses: { readonly peer: string; readonly client: string };
  /** Present: the machine has the ports of a real node. */
  readonly tls: NodeTls | undefined;
  /** Called when the machine serves clients. */
  readonly onEntry: (entry: EntryDeps) => void;
}

const DISK_BYTES = 2 ** 40;
/** The log of a node with a few ranges is small; hundreds of them share this process. */
const SEGMENT_BYTES = 1 << 20;
const NO_ENTRY: NodeEntry = { start: async () => undefined, stop: async () => undefined };

export class MachinePlatform implements NodePlatform {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger = silentLogger;
  readonly version = '0.1.0';
  readonly records: SimRecords;
  readonly logDisk: Disk;
  readonly stagingDisk: Disk;
  readonly metrics: MetricsRegistry;
  readonly tuning = { log: { segmentBytes: SEGMENT_BYTES } };
  readonly #deps: MachinePlatformDeps;
  readonly #party: Party;

  constructor(deps: MachinePlatformDeps) {
    this.#deps = deps;
    this.clock = deps.clock;
    this.random = deps.random;
    this.records = deps.records;
    this.logDisk = deps.disk;
    this.stagingDisk = deps.disk;
    this.metrics = deps.metrics;
    this.#party = { id: deps.machine, door: (fn) => fn() };
  }

  /** What a histogram has counted; the node keeps the function itself. */
  readonly reading = (name: string) => this.metrics.reading(name);

  async openEngine(deps: Parameters<NodePlatform['openEngine']>[0]): Promise<Engine> {
    const store = await openStore(new MemoryStore(new MemoryMedium()), 'the store', this.logger);
    return OverlayEngine.open(store, deps);
  }

  space() {
    const { machine } = this.#deps;
    return { capacityBytes: DISK_BYTES, availableBytes: DISK_BYTES - machine * 2 ** 31 };
  }

  async readSecret(file: string): Promise<string> {
    throw new Error(`the simulated machine has no file ${file}`);
  }

  /** Nobody logs in: authentication is off. */
  passwordThread() {
    return { start: () => undefined, post: () => undefined, stop: () => undefined };
  }

  createHost(options: RaftHostOptions) {
    return createRaftHost(options);
  }

  connect(...[target, self, verify]: Parameters<NodePlatform['connect']>) {
    return this.#deps.networks.links.connect(this.#party, target, self, verify);
  }

  openPeers(deps: PeersDeps): Peers {
    const { networks, machine, addresses } = this.#deps;
    const served = new Set<ServedLink>();
    let unlisten = (): void => undefined;
    return {
      transport: networks.peers.open({ ...deps, machine, address: addresses.peer, door: this.#party.door }),
      listen: async (registry) => {
        unlisten = this.#listen(deps, registry, served);
      },
      close: () => {
        unlisten();
        for (const link of [...served]) link.close(new ServiceError('UNAVAILABLE', 'the node is stopping'));
      },
    };
  }

  #listen({ self, identify, onNode }: PeersDeps, registry: RpcDispatcher, served: Set<ServedLink>): () => void {
    const { networks, addresses, clock } = this.#deps;
    return networks.links.listen(addresses.peer, {
      party: this.#party,
      self,
      accept: (link, peer) => {
        const who = () => (peer === undefined || peer.nodeId === 0 ? ANONYMOUS_CALLER : identify(peer));
        const caller = who();
        if (caller instanceof ServiceError) return caller;
        if (peer !== undefined && caller.kind === 'node') onNode(peer);
        const own = serveLink({ link, registry, clock, caller, identify: who, onClose: () => served.delete(own) });
        served.add(own);
        return undefined;
      },
    });
  }

  openEntry(entry: EntryDeps): NodeEntry {
    const { tls, metrics, onEntry } = this.#deps;
    onEntry(entry);
    return tls === undefined ? NO_ENTRY : new Entry(entry, metrics, new PortMetrics(metrics), tls);
  }
}
