/** A machine of the simulated cluster, with the product's node on it (`assemble.ts`), over memory instead of disks. */
import { type Clock, formatAddress, parseOptions, SeededRandom, silentLogger } from '@remora/base';
import { createMetrics } from '@remora/base/node';
import { SimDisk } from '@remora/base/testing';
import { localPorts } from '../../../packages/cli/src/local-ports.ts';
import { type AssembledNode, assembleNode } from '../../../packages/cli/src/node/assemble.ts';
import { plannedFounding } from '../../../packages/cli/src/node/cluster/cluster-identity.ts';
import type { EntryDeps } from '../../../packages/cli/src/node/platform.ts';
import { NodeTls } from '../../../packages/cli/src/node/ports/node-tls.ts';
import { advertised, type NodeOptions, nodeSchema } from '../../../packages/cli/src/node-options.ts';
import { SimRecords } from '../../sim/cluster/env/sim-records.ts';
import { seedOf } from '../../sim/common/hash.ts';
import { MachinePlatform, type Networks } from './machine-platform.ts';

export interface ClusterPlan {
  /** The places where ranges begin, except the first one; as texts of routing keys. */
  readonly borders: readonly string[];
  /** The ports of the first machine begin here: the only ones that are sockets. */
  readonly basePort: number;
}

/** All machines have these parts. */
export interface MachineDeps {
  readonly clock: Clock;
  readonly plan: ClusterPlan;
  readonly networks: Networks;
  readonly failed: (error: unknown) => void;
  /** A machine serves clients. */
  readonly onEntry: (entry: EntryDeps) => void;
}

export const FOUNDERS = 3;
/**
 * The product's time-outs are for a process per node. Here one processor runs all of them, so they talk less often.
 */
const HEARTBEAT = '2s';
const ELECTION_TIMEOUT = '20s';
const ZONES = 4;
const RACKS = 20;

/** Starts the node of a machine, from 1; the first one has real ports, as a gateway has. */
export async function startMachine(id: number, deps: MachineDeps): Promise<AssembledNode> {
  const { clock, plan, networks, failed, onEntry } = deps;
  const options = nodeOptionsOf(id, plan);
  const founding = plannedFounding(options);
  const random = new SeededRandom(seedOf(1, id));
  const { peer, client } = advertised(options);
  const metrics = createMetrics();
  const platform = new MachinePlatform({
    ...{ clock, random, networks, metrics, onEntry, machine: id },
    addresses: { peer: formatAddress(peer), client: formatAddress(client) },
    disk: new SimDisk({ random, clock, latencyMs: 0 }),
    records: new SimRecords({
      incarnation: `machine ${id}`,
      ...(founding && { clusterId: founding.clusterId, nodeId: founding.ownNodeId, founders: founding.names }),
    }),
    tls: id === 1 ? await NodeTls.open(options, { clock, logger: silentLogger }) : undefined,
  });
  const node = await assembleNode(options, platform, new AbortController().signal);
  node.failed.catch(failed);
  return node;
}

function nodeOptionsOf(id: number, { borders, basePort }: ClusterPlan): NodeOptions {
  const founders = Array.from({ length: FOUNDERS }, (_, i) => i + 1);
  const peerOf = (machine: number): string => `127.0.0.1:${localPorts(basePort, machine).peer}`;
  const { client, peer, http, health } = localPorts(basePort, id);
  const isFounder = founders.includes(id);
  return parseOptions(nodeSchema, {
    flags: {
      name: `${isFounder ? 'm' : 'd'}${String(id).padStart(3, '0')}`,
      roles: isFounder ? 'master,data,gateway' : 'data,gateway',
      clientListen: `127.0.0.1:${client}`,
      peerListen: `127.0.0.1:${peer}`,
      httpListen: `127.0.0.1:${http}`,
      healthListen: `127.0.0.1:${health}`,
      labels: `zone=z${id % ZONES},rack=r${id % RACKS}`,
      ...(isFounder
        ? { initialCluster: founders.map((each) => `m${String(each).padStart(3, '0')}=${peerOf(each)}`).join(',') }
        : { join: founders.map(peerOf).join(',') }),
      preSplit: borders.join(','),
      heartbeatInterval: HEARTBEAT,
      electionTimeout: ELECTION_TIMEOUT,
      checkpointInterval: '10m',
      snapshotBytesPerSecondMax: '0',
      snapshotSendsMax: '100',
      snapshotReceivesMax: '100',
    },
  });
}
