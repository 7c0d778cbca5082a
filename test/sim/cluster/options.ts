/** How a cluster is set up, drawn from its seed: sizes, limits, times. */
import { type Bytes, type Random, SeededRandom } from '@remora/base';
import { kvRoutingKey, LOCK_SPACE } from '@remora/protocol';
import type { NodeTuning } from '../../../packages/cli/src/node/platform.ts';
import { seedOf } from '../common/hash.ts';
import {
  drawMachines,
  isAuthenticated,
  isMoving,
  isSteered,
  isUpgraded,
  type MachineOptions,
  withSpares,
} from './topology.ts';

export interface ClusterOptions {
  readonly machines: readonly MachineOptions[];
  readonly clients: number;
  /** Concurrent operations of a client in each workload. */
  readonly hands: number;
  /** Mean pause between operations. */
  readonly thinkMs: number;
  readonly requestTimeoutMs: number;
  readonly linkDelayMs: number;
  readonly linkJitterMs: number;
  /** The largest deviation of a process's clock from the world's, in thousandths. */
  readonly driftPerMille: number;
  readonly heartbeatMs: number;
  readonly electionMs: number;
  readonly checkpointMs: number;
  /** Longest time that a write or a sync takes. */
  readonly diskMs: number;
  /** Whether the masters schedule, and ranges change (topology.ts). */
  readonly steered: boolean;
  /** Whether authentication is on, from the founding. */
  readonly authenticated: boolean;
  /** Whether nodes are of two releases (releases.ts). */
  readonly upgraded: boolean;
  /** Per gateway; 0: no limit. */
  readonly requestsPerSecondMax: number;
  readonly tuning: NodeTuning;
  /** The time with faults. */
  readonly runMs: number;
}

/** The gateway part of everything that a seed decides. */
const GATEWAYS = 0x9a7e;
const BORDERS = 0xb0de;
/** Between the keys of leases, locks and workloads, and amid the lists. */
const FIRST_BORDERS: readonly Bytes[] = [
  Buffer.from([LOCK_SPACE]),
  kvRoutingKey(Buffer.alloc(0)),
  kvRoutingKey(Buffer.from('r')),
  kvRoutingKey(Buffer.from('t/2')),
];

function pick<T>(random: Random, ...of: readonly [T, ...T[]]): T {
  return of[random.int(of.length)] ?? of[0];
}

/** The own rate of a process's clock: as far off as allowed, in either direction, or exact. */
export function ownRate(seed: number, process: number, { driftPerMille }: ClusterOptions): number {
  const random = new SeededRandom(seedOf(seed, process, 3));
  return 1 + (pick(random, -1, 0, 1) * driftPerMille) / 1_000;
}

export function optionsOf(seed: number): ClusterOptions {
  const { gateway, requestsPerSecondMax } = drawGateways(new SeededRandom(seedOf(seed, GATEWAYS)));
  const { tuning, machines, ...drawn } = drawOptions(new SeededRandom(seedOf(seed)));
  const steered = isSteered(seed);
  // Without steering, the run itself adds and removes replicas (members.ts, moves.ts).
  const borders = isUpgraded(seed) ? FIRST_BORDERS : drawBorders(new SeededRandom(seedOf(seed, BORDERS)));
  const master = steered ? { borders } : { scheduling: false };
  return {
    ...drawn,
    // Many ranges take more time to simulate, and more happens in the same time.
    runMs: steered ? drawn.runMs / 2 : drawn.runMs,
    machines: isMoving(seed) || steered ? withSpares(machines) : machines,
    steered,
    authenticated: isAuthenticated(seed),
    upgraded: isUpgraded(seed),
    requestsPerSecondMax,
    tuning: { ...tuning, gateway, master },
  };
}

/** Half of the clusters begin with one range, the others with one for each kind of keys. */
function drawBorders(random: Random): readonly Bytes[] {
  return pick(random, [], FIRST_BORDERS);
}

interface GatewayOptions {
  readonly requestsPerSecondMax: number;
  readonly gateway: NonNullable<NodeTuning['gateway']>;
}

/** Has a random generator of its own, so that it can be drawn differently while clusters stay the same. */
function drawGateways(random: Random): GatewayOptions {
  return {
    requestsPerSecondMax: pick(random, 0, 0, 0, 30, 60),
    gateway: { waitsMax: pick(random, 1, 3, 1_000, 1_000) },
  };
}

function drawOptions(
  random: Random,
): Omit<ClusterOptions, 'requestsPerSecondMax' | 'steered' | 'authenticated' | 'upgraded'> {
  return {
    machines: drawMachines(random),
    clients: 2 + random.int(4),
    hands: pick(random, 1, 2, 3),
    thinkMs: pick(random, 80, 120, 200),
    // At least the longest wait for an election: a request with less time is served only by chance when faults are
    // frequent.
    requestTimeoutMs: pick(random, 1_000, 1_500, 4_000),
    linkDelayMs: pick(random, 0, 1, 3),
    linkJitterMs: pick(random, 0, 2, 8),
    driftPerMille: pick(random, 0, 20, 50),
    heartbeatMs: 100,
    electionMs: 500,
    checkpointMs: pick(random, 300, 1_000, 3_000),
    diskMs: pick(random, 0, 1, 4, 15),
    tuning: drawTuning(random),
    runMs: 60_000,
  };
}

/** Small sizes, so that rare events happen often. */
function drawTuning(random: Random): NodeTuning {
  const tailEntries = pick(random, 3, 20, 1_000);
  return {
    host: {
      tailEntries,
      entryCacheBytes: pick(random, 2_000, 1 << 20),
      maxInflightMessages: pick(random, 2, 8, 256),
      snapshotRetryMs: 100,
      silenceTicks: 120,
      snapshotHoldMs: pick(random, 0, 500),
    },
    log: {
      segmentBytes: pick(random, 16_384, 65_536),
      recentBytes: pick(random, 5_000, 1 << 20),
    },
    ranges: {
      watchRingBytesMax: pick(random, 4_000, 1 << 20),
      outcomeBytesMax: 4 << 20,
      timeCarryMs: pick(random, 2_000, 8_000),
      compactionRetentionMs: pick(random, 0, 5_000, 20_000),
    },
  };
}
