/** The platform of a node in memory: the ports of `../node/platform.ts` without disk, network and threads. */
import { passwordThread } from '@remora/auth';
import { type Clock, type Logger, randomGuid, type SeededRandom, ServiceError } from '@remora/base';
import { SimDisk } from '@remora/base/testing';
import { MemoryEngine, MemoryMedium } from '@remora/dataserver/testing';
import type { FrameLink } from '@remora/protocol';
import { createRaftHost, type Transport } from '@remora/raft';
import { plannedFounding } from '../node/cluster/cluster-identity.ts';
import type { EntryDeps, NodeEntry, NodePlatform, NodeTuning } from '../node/platform.ts';
import type { NodeOptions } from '../node-options.ts';
import { VERSION } from '../version.ts';
import { MemoryRecords } from './memory-records.ts';

/** The log begins with two segments in memory: the usual 16 MiB each would cost more than all the rest. */
const TUNING: NodeTuning = { log: { segmentBytes: 1 << 20 } };
/** Far more than a test writes. */
const DISK_BYTES = 2 ** 40;

/** What is left of a node while it does not run. */
export class MemoryMachine {
  readonly records: MemoryRecords;
  readonly disk: SimDisk;
  readonly medium = new MemoryMedium();

  constructor(options: NodeOptions, random: SeededRandom) {
    const founders = plannedFounding(options);
    if (founders === undefined) throw new Error('a test node founds its cluster');
    const { clusterId, ownNodeId: nodeId, names } = founders;
    this.records = new MemoryRecords({ incarnation: randomGuid(random), clusterId, nodeId, founders: names });
    this.disk = new SimDisk({ random });
  }
}

export interface MemoryPlatformDeps {
  readonly machine: MemoryMachine;
  readonly clock: Clock;
  readonly random: SeededRandom;
  readonly logger: Logger;
  readonly openEntry: (deps: EntryDeps) => NodeEntry;
}

export function memoryPlatform({ machine, clock, random, logger, openEntry }: MemoryPlatformDeps): NodePlatform {
  const { records, disk, medium } = machine;
  return {
    ...{ clock, random, logger, records, passwordThread, openEntry },
    version: VERSION,
    tuning: TUNING,
    logDisk: disk,
    stagingDisk: disk,
    space: () => ({ capacityBytes: DISK_BYTES, availableBytes: DISK_BYTES }),
    readSecret: async (file) => {
      throw new Error(`a test node reads no files, such as ${file}`);
    },
    openEngine: async (deps) => new MemoryEngine(deps, medium),
    createHost: createRaftHost,
    connect: () => deadLink(clock),
    openPeers: () => ({ transport: NO_TRANSPORT, listen: async () => {}, close() {} }),
  };
}

/** The node is alone. */
const NO_TRANSPORT: Transport = {
  start() {},
  send() {},
  sendHeartbeat() {},
  sendSnapshot: async () => {
    throw new Error('a test cluster has one node');
  },
  async stop() {},
};

function deadLink(clock: Clock): FrameLink {
  return {
    start: (receiver) =>
      clock.setImmediate(() => receiver.onClose(new ServiceError('UNAVAILABLE', 'a test cluster has one node'))),
    send: () => true,
    close() {},
  };
}
