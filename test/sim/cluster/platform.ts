/**
 * The platform of a simulated node: the ports of `packages/cli/src/node/platform.ts` over a virtual network, disk and
 * store. It lacks a process's sockets, and the gRPC and HTTP services on them; clients come through the Pipe.
 */
import { isPassword, type PasswordThread, ROOT, SALT_BYTES } from '@remora/auth';
import {
  BUILD_VERSIONS,
  type Clock,
  type Disk,
  type Engine,
  type Logger,
  type Random,
  ServiceError,
  type VersionRange,
} from '@remora/base';
import type { OnApplied } from '@remora/dataserver';
import { AuthAdmin, type Backend, ClusterCalls, createPipeRegistry, PIPE_LIMITS, servePipe } from '@remora/gateway';
import {
  ANONYMOUS_CALLER,
  type Caller,
  HeldBytes,
  type RpcDispatcher,
  type ServedLink,
  serveLink,
} from '@remora/protocol';
import type { GroupMessage, RaftHostOptions } from '@remora/raft';
import type { EntryDeps, NodeEntry, NodePlatform, Peers, PeersDeps } from '../../../packages/cli/src/node/platform.ts';
import { openStore } from '../../../packages/dataserver/src/engine/open-store.ts';
import { OverlayEngine } from '../../../packages/dataserver/src/engine/overlay-engine.ts';
import { AdminApi } from '../../../packages/gateway/src/admin/admin-api.ts';
import { anonymousConnection } from '../../../packages/gateway/test/support/no-authentication.ts';
import { ProcessTransport } from '../common/env/process-transport.ts';
import { type HostWatch, watchedHost } from '../common/raft/watched-host.ts';
import type { Trace } from '../common/trace.ts';
import { type Answers, checkedBackend } from './checks/answers.ts';
import type { AppliedCommands } from './checks/applied-commands.ts';
import { checkedLimits } from './checks/limits.ts';
import { checkedOwners, type Owners } from './checks/owners.ts';
import type { LinkNetwork, Party } from './env/link-network.ts';
import type { PeerNetwork } from './env/peer-network.ts';
import type { SimRecords } from './env/sim-records.ts';
import type { SimStore } from './env/sim-store.ts';
import { WatchedEngine } from './env/watched-engine.ts';
import type { ClusterOptions } from './options.ts';
import { cheapHash, passwordOf, ROOT_PASSWORD_FILE } from './users.ts';

/** Of all connections of a gateway together. */
const HELD_BYTES_MAX = 64 << 20;
const STOPPING = new ServiceError('UNAVAILABLE', 'the node is stopping');

export interface PlatformDeps {
  readonly party: Party;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly trace: Trace;
  /** Observes Raft. */
  readonly watch: HostWatch & { sent(messages: readonly GroupMessage[]): void };
  /** Observes the results of apply, and the answers. */
  readonly applied: AppliedCommands;
  readonly answers: Answers;
  readonly owners: Owners;
  readonly onTransaction: () => void;
  readonly fail: (error: unknown) => void;
  readonly records: SimRecords;
  /** What the program can write; absent: what this tree can. */
  readonly versions: VersionRange | undefined;
  readonly disk: Disk;
  readonly store: SimStore;
  readonly links: LinkNetwork;
  readonly peers: PeerNetwork;
  readonly options: ClusterOptions;
  readonly addresses: { readonly peer: string; readonly client: string };
}

/** The capacity of every machine's disk, far above what is written. */
const DISK_BYTES = 2 ** 40;

export class SimPlatform implements NodePlatform {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly version = 'simulated';
  readonly versions: VersionRange;
  readonly records: SimRecords;
  readonly logDisk: Disk;
  readonly stagingDisk: Disk;
  readonly tuning: ClusterOptions['tuning'];
  readonly onApplied: OnApplied;
  /** Absent until the node serves. */
  admin: AdminApi | undefined;
  /** Manages users and roles; absent until the node serves. */
  auth: AuthAdmin | undefined;
  #engine: WatchedEngine | undefined;
  readonly #deps: PlatformDeps;
  #transport: ProcessTransport | undefined;

  constructor(deps: PlatformDeps) {
    this.#deps = deps;
    this.clock = deps.clock;
    this.random = deps.random;
    this.logger = deps.logger;
    this.records = deps.records;
    this.logDisk = deps.disk;
    this.stagingDisk = deps.disk;
    this.versions = deps.versions ?? BUILD_VERSIONS;
    this.tuning = deps.options.tuning;
    this.onApplied = (command) => deps.applied.applied(deps.party.id, command, this.#engine?.takeDigest() ?? 0);
  }

  /** The process has ended; `told`: its machine notifies others. */
  end(told: boolean): void {
    const { store, links, party } = this.#deps;
    store.end();
    void this.#transport?.end();
    links.ended(party, told);
  }

  async openEngine(deps: Parameters<NodePlatform['openEngine']>[0]): Promise<Engine> {
    const store = await openStore(this.#deps.store, 'the store', this.logger);
    this.#engine = new WatchedEngine(await OverlayEngine.open(store, deps));
    return this.#engine;
  }

  space() {
    return { capacityBytes: DISK_BYTES, availableBytes: DISK_BYTES };
  }

  async readSecret(file: string): Promise<string> {
    if (file === ROOT_PASSWORD_FILE) return passwordOf(ROOT);
    throw new Error(`the simulated machine has no file ${file}`);
  }

  /** Hashes in a turn of its own, as the simulated process has no other thread. */
  passwordThread(): PasswordThread {
    let answered = (_result: string | boolean): void => {};
    return {
      start(on) {
        answered = on;
      },
      post: (task) =>
        this.clock.setImmediate(() =>
          answered(
            task.type === 'hash'
              ? cheapHash(task.password, this.random.bytes(SALT_BYTES))
              : isPassword(task.password, task.hash),
          ),
        ),
      stop() {},
    };
  }

  createHost(options: RaftHostOptions) {
    return watchedHost(options, this.#deps.watch);
  }

  connect(...[target, self, verify]: Parameters<NodePlatform['connect']>) {
    return this.#deps.links.connect(this.#deps.party, target, self, verify);
  }

  openPeers(deps: PeersDeps): Peers {
    const { party, peers, trace, watch, addresses } = this.#deps;
    const transport = new ProcessTransport({
      inner: peers.open({ ...deps, machine: party.id, address: addresses.peer, door: party.door }),
      door: party.door,
      onSend: (messages) => watch.sent(messages),
      onHeartbeat: ({ type, sequence }) => trace.add('heartbeat', party.id, 0, sequence, 0, type),
    });
    this.#transport = transport;
    const served = new Served();
    return {
      transport,
      listen: async (registry) => served.listen(() => this.#listenForCalls(deps, registry, served)),
      close: () => served.close(),
    };
  }

  #listenForCalls({ self, identify, onNode }: PeersDeps, registry: RpcDispatcher, served: Served): () => void {
    const { links, party, clock, addresses } = this.#deps;
    return links.listen(addresses.peer, {
      party,
      self,
      accept: (link, peer) => {
        const who = (): Caller | ServiceError =>
          peer === undefined || peer.nodeId === 0 ? ANONYMOUS_CALLER : identify(peer);
        const caller = who();
        if (caller instanceof ServiceError) return caller;
        if (peer !== undefined && caller.kind === 'node') onNode(peer);
        served.add((onClose) => serveLink({ link, registry, clock, caller, identify: who, onClose }));
        return undefined;
      },
    });
  }

  /** The Pipe, for SDK clients. */
  openEntry(entry: EntryDeps): NodeEntry {
    const { options, clock, backend } = entry;
    const { links, party, addresses, answers, fail, onTransaction } = this.#deps;
    const { requestBytesMax, txnOpsMax } = options;
    this.admin = new AdminApi(entry);
    this.auth = new AuthAdmin({ ...entry, calls: new ClusterCalls(entry) });
    const owned = this.#deps.options.authenticated ? checkedOwners(backend, this.#deps.owners) : backend;
    const seen = withTransactions(owned, onTransaction);
    const registry = createPipeRegistry(checkedBackend(checkedLimits(seen, fail), answers), {
      identification: entry.authenticator,
      requestLimits: { requestBytesMax, txnOpsMax },
      conditions: () => entry.health.conditions(),
    });
    const held = new HeldBytes(HELD_BYTES_MAX);
    const served = new Served();
    const accept = (link: Parameters<typeof servePipe>[0]['link']): undefined => {
      served.add((onClose) =>
        servePipe({ link, connection: anonymousConnection(), registry, clock, limits: PIPE_LIMITS, held, onClose }),
      );
    };
    return {
      start: async () => {
        if (options.roles.includes('gateway')) served.listen(() => links.listen(addresses.client, { party, accept }));
      },
      stop: async () => served.close(),
    };
  }
}

/** A gateway's connection to the ranges, which reports the transactions that it receives. */
function withTransactions(backend: Backend, onTransaction: () => void): Backend {
  return {
    nodeId: backend.nodeId,
    view: () => backend.view(),
    rangeTimeMs: () => backend.rangeTimeMs(),
    check: (principal, needs) => backend.check(principal, needs),
    watch: (options, listener) => backend.watch(options, listener),
    watchLocks: (options, listener, onEnd) => backend.watchLocks(options, listener, onEnd),
    command: (command, options, done) => {
      if (command.type === 'txn') onTransaction();
      return backend.command(command, options, done);
    },
    query: (query, options, done) => backend.query(query, options, done),
  };
}

/** The accepted links of a listener. */
class Served {
  readonly #links = new Set<ServedLink>();
  #unlisten: () => void = () => {};

  listen(begin: () => () => void): void {
    this.#unlisten = begin();
  }

  add(serve: (onClose: () => void) => ServedLink): void {
    const link = serve(() => this.#links.delete(link));
    this.#links.add(link);
  }

  close(): void {
    this.#unlisten();
    for (const link of [...this.#links]) link.close(STOPPING);
  }
}
