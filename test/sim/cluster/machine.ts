/**
 * A machine's disk with everything on it: the log, the rows of the engine, and the node's records about itself and its
 * peers. When a disk is lost all of that is; the node on the next disk is another node.
 */
import { parseOptions, SeededRandom } from '@remora/base';
import { SimDisk } from '@remora/base/testing';
import { localPorts } from '../../../packages/cli/src/local-ports.ts';
import { plannedFounding } from '../../../packages/cli/src/node/cluster/cluster-identity.ts';
import { type NodeOptions, nodeSchema } from '../../../packages/cli/src/node-options.ts';
import type { MemoryMedium } from '../../../packages/dataserver/src/testing/memory-store.ts';
import type { SimLoop } from '../common/env/loop.ts';
import { seedOf } from '../common/hash.ts';
import { DurableLog } from '../common/raft/durable-log.ts';
import { StoredPositions } from './checks/stored-positions.ts';
import { type LostBatches, SimMedium } from './env/sim-medium.ts';
import { SimRecords } from './env/sim-records.ts';
import type { ClusterOptions } from './options.ts';
import type { MachineOptions } from './topology.ts';
import { ROOT_PASSWORD_FILE } from './users.ts';

const BASE_PORT = 7_480;
/** Where a node keeps its log. */
const LOG_DIR = 'log';

export function clientAddress({ id }: MachineOptions): string {
  return `127.0.0.1:${localPorts(BASE_PORT, id).client}`;
}

function peerAddress({ id }: MachineOptions): string {
  return `127.0.0.1:${localPorts(BASE_PORT, id).peer}`;
}

interface StorageOptions {
  readonly machine: MachineOptions;
  readonly seed: number;
  readonly loop: SimLoop;
  readonly cluster: ClusterOptions;
  /** The number of the machine's earlier disks. */
  readonly disksBefore: number;
  /** The node claims to be a founding member; otherwise it asks to join, under a name of its own. */
  readonly founder: boolean;
}

export class Storage {
  /** The node on it claims to be a founding member. */
  readonly founder: boolean;
  /** That founding member had another disk. */
  readonly impostor: boolean;
  readonly random: SeededRandom;
  readonly disk: SimDisk;
  readonly medium = new SimMedium();
  readonly records: SimRecords;
  /** The surviving part of the log, and the position that the rows of the engine reach. */
  readonly durable: DurableLog;
  readonly positions = new StoredPositions(this.medium);
  readonly #options: StorageOptions;
  #nodeOptions: NodeOptions;

  constructor(options: StorageOptions) {
    const { machine, seed, loop, cluster, disksBefore } = options;
    this.founder = options.founder;
    this.impostor = options.founder && disksBefore > 0;
    this.random = new SeededRandom(seedOf(seed, machine.id, 1, disksBefore));
    this.disk = new SimDisk({ random: this.random, clock: loop, latencyMs: cluster.diskMs });
    this.durable = new DurableLog(this.disk, LOG_DIR);
    this.#options = options;
    this.#nodeOptions = nodeOptionsOf(options);
    const founders = plannedFounding(this.#nodeOptions);
    this.records = new SimRecords({
      incarnation: `machine ${machine.id}, disk ${disksBefore}`,
      ...(founders && { clusterId: founders.clusterId, nodeId: founders.ownNodeId, founders: founders.names }),
    });
  }

  /** The options of the node on it. */
  get nodeOptions(): NodeOptions {
    return this.#nodeOptions;
  }

  /** The next process has these options instead. */
  changeOptions(flags: Readonly<Record<string, string>>): void {
    this.#nodeOptions = nodeOptionsOf(this.#options, flags);
  }

  /**
   * The engine's store as a process that starts now finds it, and whether the process must notice that batches are
   * lost: because later ones exist, or because the log has dropped their contents. Otherwise they are lost for good,
   * and the log applies their contents again.
   */
  found(lost: LostBatches | undefined): { readonly medium: MemoryMedium; readonly noticeable: boolean } {
    if (lost?.stand === true) {
      const medium = lost.rest();
      if (lost.beforeOthers || !this.#reaches(medium)) return { medium, noticeable: true };
      // While a snapshot was being installed, its file decides the fate of the replica.
      if (!new StoredPositions(medium).installing) lost.lose();
    }
    this.medium.opened();
    return { medium: this.medium, noticeable: false };
  }

  /** Whether the log continues where the state of each group ends in these rows. */
  #reaches(rows: MemoryMedium): boolean {
    const positions = new StoredPositions(rows);
    // As the process will read it: after a kill including unsynced writes.
    const log = new DurableLog(this.disk, LOG_DIR, (path) =>
      this.disk.has(path) ? this.disk.contents(path) : undefined,
    );
    log.reread();
    return [...log.groups].every(
      ([groupId, { start }]) => positions.has(groupId) && start.index <= positions.of(groupId).index,
    );
  }
}

/** The roles of a joining node on this machine: usually only the founding members are masters. */
function rolesOfNew({ roles, mayBecomeMaster = false }: MachineOptions): MachineOptions['roles'] {
  if (mayBecomeMaster) return roles;
  const others = roles.filter((role) => role !== 'master');
  return others.length > 0 ? others : ['gateway'];
}

function nodeOptionsOf(
  { machine, cluster, disksBefore, founder }: StorageOptions,
  changed: Readonly<Record<string, string>> = {},
): NodeOptions {
  const { machines, authenticated, heartbeatMs, electionMs, checkpointMs, requestsPerSecondMax } = cluster;
  const { client, peer, http, health } = localPorts(BASE_PORT, machine.id);
  const founders = machines.filter((one) => one.founder);
  const others = founders.filter(({ id }) => id !== machine.id);
  return parseOptions(nodeSchema, {
    flags: {
      name: founder || disksBefore === 0 ? `n${machine.id}` : `n${machine.id}.${disksBefore}`,
      roles: (founder ? machine.roles : rolesOfNew(machine)).join(','),
      clientListen: `127.0.0.1:${client}`,
      peerListen: `127.0.0.1:${peer}`,
      httpListen: `127.0.0.1:${http}`,
      healthListen: `127.0.0.1:${health}`,
      ...(founder
        ? { initialCluster: founders.map((one) => `n${one.id}=${peerAddress(one)}`).join(',') }
        : { join: others.map(peerAddress).join(',') }),
      ...(founder && authenticated && { initialRootPasswordFile: ROOT_PASSWORD_FILE }),
      heartbeatInterval: `${heartbeatMs}ms`,
      electionTimeout: `${electionMs}ms`,
      checkpointInterval: `${checkpointMs}ms`,
      requestsPerSecondMax: String(requestsPerSecondMax),
      ...changed,
    },
  });
}
