/** The setup of a world, drawn from its seed: sizes, limits, times. */
import { type Random, SeededRandom } from '@remora/base';
import type { GroupLogOptions, HostOptions } from '@remora/raft';
import { hostOptions, leaseLengthOf } from '../../../packages/raft/src/multi/host/options.ts';
import type { MachineOptions } from './machine.ts';

export interface NodeOptions {
  readonly host: Partial<HostOptions>;
  readonly machine: MachineOptions;
  readonly log: GroupLogOptions;
  /** The longest time that a write or a sync takes. */
  readonly diskMs: number;
  readonly checkpointMs: number;
  /** Waits for a leader are often the shortest possible: leases depend on the shortest wait. */
  readonly hasty: boolean;
  /** The initial rate of its clock. */
  readonly rate: number;
}

export interface WorldOptions {
  readonly nodes: number;
  readonly groups: number;
  /** The initial number of replicas of each group. */
  readonly replicas: number;
  readonly clients: number;
  /** A client's mean pause between operations. */
  readonly thinkMs: number;
  readonly payloadBytesMax: number;
  readonly linkDelayMs: number;
  readonly linkJitterMs: number;
  /** How far a node's clock may deviate from the world's, per mille. */
  readonly driftPerMille: number;
  readonly electionMs: number;
  readonly runMs: number;
  /** The whole run is about leases: short elections, clocks at the bound, quiet groups. */
  readonly leases: boolean;
  readonly node: (id: number) => NodeOptions;
}

function pick<T>(random: Random, ...of: readonly [T, ...T[]]): T {
  return of[random.int(of.length)] ?? of[0];
}

/** Lease reads, if the other times allow a lease that outlives a heartbeat interval. */
function leaseOptions(common: Partial<HostOptions>, driftPerMille: number): Partial<HostOptions> {
  // For two clocks that deviate by this much in opposite directions.
  const leaseDriftPercent = Math.max(1, Math.ceil((2 * driftPerMille) / 10) + 1);
  const { heartbeatTicks, tickMs, ...rest } = hostOptions({ ...common, leaseDriftPercent });
  const leaseReads = leaseLengthOf({ ...rest, heartbeatTicks, tickMs }) > heartbeatTicks * tickMs;
  return { leaseReads, leaseDriftPercent };
}

/** One of this many runs is about leases. */
const LEASES_EVERY = 5;

/** The options of a seed's run. */
export function optionsOf(seed: number): WorldOptions {
  const random = new SeededRandom(seed);
  return seed % LEASES_EVERY === 0 ? drawLeaseOptions(random) : drawOptions(random);
}

/** Fast nodes and links, so that the margins of a lease are the largest remaining part. */
function drawLeaseOptions(random: Random): WorldOptions {
  const tickMs = 10;
  const electionTicks = pick(random, 8, 10, 14, 18);
  const common: Partial<HostOptions> = { tickMs, electionTicks, heartbeatTicks: pick(random, 1, 2, 2) };
  const driftPerMille = pick(random, 0, 10, 50);
  const catchUpTicksMax = pick(random, 1, 1, 2);
  const host = { ...common, catchUpTicksMax, ...leaseOptions({ ...common, catchUpTicksMax }, driftPerMille) };
  const rates = Array.from({ length: 8 }, () => 1 + pick(random, -driftPerMille, 0, driftPerMille) / 1_000);
  const log: GroupLogOptions = { segmentBytes: 65_536 };
  const machine: MachineOptions = { slowApplyPerMille: 0, snapshotChunkBytes: 4_096, storeMsMax: 0 };
  return {
    nodes: 3,
    groups: pick(random, 1, 1, 2),
    replicas: 3,
    clients: 1,
    thinkMs: pick(random, 100, 1_000, 1_000),
    payloadBytesMax: 20,
    linkDelayMs: pick(random, 0, 1),
    linkJitterMs: pick(random, 0, 1, 3),
    driftPerMille,
    electionMs: tickMs * electionTicks,
    runMs: 6_000 + random.int(3_000),
    leases: true,
    node: (id) => ({ host, machine, log, diskMs: 0, checkpointMs: 1_500, hasty: true, rate: rates[id] ?? 1 }),
  };
}

/** The limits of what one call applies: of one entry, by bytes, and of everything. */
const SLICES: readonly Pick<HostOptions, 'applySliceEntries' | 'applySliceBytes'>[] = [
  { applySliceEntries: 1, applySliceBytes: 1 << 20 },
  { applySliceEntries: 256, applySliceBytes: 100 },
  { applySliceEntries: 256, applySliceBytes: 1 << 20 },
];

function drawOptions(random: Random): WorldOptions {
  const nodes = pick(random, 3, 3, 4, 5, 5, 6, 7);
  const tickMs = pick(random, 30, 40, 50);
  const electionTicks = 6 + random.int(5);
  const common: Partial<HostOptions> = {
    tickMs,
    electionTicks,
    heartbeatTicks: 1 + random.int(2),
    catchUpTicksMax: pick(random, 1, 2, 4),
    snapshotSendsMax: pick(random, 1, 2, 3),
    snapshotReceivesMax: pick(random, 1, 2, 3),
    snapshotIdleTimeoutMs: pick(random, 300, 1_000),
    snapshotSendTimeoutMs: 3_000,
    snapshotRetryMs: pick(random, 20, 100),
    snapshotHoldMs: pick(random, 0, 200, 1_000),
  };
  const driftPerMille = pick(random, 0, 20, 50);
  const lease = leaseOptions(common, driftPerMille);
  const tail = pick(random, 0, 3, 10, 1_000);
  const node = (): NodeOptions => ({
    host: {
      ...common,
      ...lease,
      maxEntryBytesPerMessage: pick(random, 64, 300, 1 << 20),
      maxInflightMessages: pick(random, 1, 2, 8, 256),
      maxInflightBytes: pick(random, 100, 1_000, 1 << 20),
      maxUncommittedBytes: pick(random, 300, 2_000, 1 << 20),
      maxApplyingBytes: pick(random, 100, 1 << 20),
      entryCacheBytes: pick(random, 1, 2_000, 20_000, 1 << 20),
      entryReadsMax: pick(random, 1, 4),
      ...SLICES[random.int(SLICES.length)],
      tailEntries: tail,
      tailBytes: pick(random, 200, 1 << 20),
    },
    machine: {
      slowApplyPerMille: pick(random, 0, 0, 20, 100),
      snapshotChunkBytes: pick(random, 64, 200, 4_096),
      storeMsMax: pick(random, 0, 5, 40),
    },
    log: {
      segmentBytes: pick(random, 4_096, 4_096, 8_192, 65_536),
      writeBytesMax: pick(random, 200, 4 << 20),
      recentBytes: pick(random, 1, 5_000, 1 << 20),
      queueBytesMax: pick(random, 2_000, 1 << 20),
    },
    diskMs: pick(random, 0, 1, 4, 15),
    checkpointMs: pick(random, 150, 400, 1_500),
    hasty: false,
    rate: 1,
  });
  const perNode = Array.from({ length: nodes + 1 }, node);
  return {
    nodes,
    groups: pick(random, 1, 1, 2, 2, 3, 4),
    replicas: Math.min(nodes, pick(random, 3, 3, 3, 5)),
    clients: 2 + random.int(3),
    thinkMs: pick(random, 15, 40, 80, 400, 1_000),
    payloadBytesMax: pick(random, 20, 100, 800),
    linkDelayMs: pick(random, 0, 1, 3),
    linkJitterMs: pick(random, 0, 2, 8),
    driftPerMille,
    electionMs: tickMs * electionTicks,
    runMs: 4_000 + random.int(3_000),
    leases: false,
    node: (id) => perNode[id] ?? node(),
  };
}
