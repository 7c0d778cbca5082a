/**
 * A busy cluster without failures, for a long time: slow disks, event loops that stand still for a while, a network
 * that is late, and clients that write. All nodes have the time-outs of a product's node. One seed is ten minutes.
 *
 * C1. Each group elects one leader at the start, and never another one: none of what happens is a reason for it.
 *
 * The bounds follow from the election time-out. A follower hears its leader at the latest after a heartbeat interval,
 * the leader's longest pause, the longest way, and a tick for the rounding at each end. A slow disk delays none of
 * these, because heartbeats and their answers wait for no sync.
 */
import { parseOptions, type Random, SeededRandom } from '@remora/base';
import { raftOptions } from '../../../packages/cli/src/node/raft-options.ts';
import { nodeSchema } from '../../../packages/cli/src/node-options.ts';
import { hostOptions } from '../../../packages/raft/src/multi/host/options.ts';
import type { SimResult } from '../common/cli/simulation.ts';
import { failureOf } from '../common/failure.ts';
import { Violation } from '../common/violation.ts';
import { Client } from '../raft/client.ts';
import type { SimNode } from '../raft/node.ts';
import type { WorldOptions } from '../raft/options.ts';
import { World } from '../raft/world.ts';

export const DISTURBANCES = ['slow disk', 'pause', 'late network'] as const;
type Disturbance = (typeof DISTURBANCES)[number];

/** The simulated time of one seed. */
export const RUN_MS = 10 * 60_000;
/** The first elections happen before this. */
const ELECTED_WITHIN_MS = 5_000;
const LATE_MS_MAX = 30;
/** A sync of a slow disk takes up to a time drawn from here, and so does each write before it. */
const SLOW_DISK_MS = { least: 50, most: 300 };
const FAST_DISK_MS = 4;
/** The mean time between two disturbances of a kind, for each node. */
const EVERY_MS: Readonly<Record<Disturbance, number>> = { 'slow disk': 10_000, pause: 2_000, 'late network': 10_000 };
const GROUPS = 3;

const host = hostOptions(raftOptions(parseOptions(nodeSchema, { flags: {} })));
const ELECTION_MS = host.electionTicks * host.tickMs;
/** C1: the longest pause that is no reason for an election. */
export const PAUSE_MS_MAX = ELECTION_MS - (host.heartbeatTicks + 2) * host.tickMs - LATE_MS_MAX;

/** Settings of a run that are not drawn from its seed. */
export interface CalmChange {
  readonly runMs?: number;
  /** A longer pause than `PAUSE_MS_MAX` breaks C1. */
  readonly pauseMsMax?: number;
}

export async function runSeed(seed: number, change: CalmChange = {}): Promise<SimResult> {
  const { runMs = RUN_MS, pauseMsMax = PAUSE_MS_MAX } = change;
  const world = new World(seed, optionsOf(runMs));
  const disturbed = new Disturber(world, pauseMsMax);
  try {
    world.begin();
    const random = new SeededRandom(seed ^ 0xca17);
    await drive(world, ELECTED_WITHIN_MS);
    const first = terms(world);
    for (let i = 0; i < world.options.clients; i++) new Client(world, random).run(runMs);
    disturbed.begin(runMs);
    await drive(world, runMs, () => keepsLeaders(world, first));
  } catch (error) {
    world.fail(error);
  }
  return resultOf(world, disturbed.fired);
}

function optionsOf(runMs: number): WorldOptions {
  const node = {
    host,
    machine: { slowApplyPerMille: 0, snapshotChunkBytes: 4_096, storeMsMax: 5 },
    log: { segmentBytes: 1 << 20 },
    ...{ diskMs: FAST_DISK_MS, checkpointMs: 5_000, hasty: false, rate: 1 },
  };
  return {
    ...{ nodes: 3, groups: GROUPS, replicas: 3, clients: 3, thinkMs: 150, payloadBytesMax: 200 },
    ...{ linkDelayMs: 0, linkJitterMs: 1, driftPerMille: 0, electionMs: ELECTION_MS, runMs, leases: false },
    node: () => node,
  };
}

/** Runs until `untilMs`, and looks at the groups now and then. */
async function drive(world: World, untilMs: number, look: () => void = () => undefined): Promise<void> {
  const { loop } = world;
  let nextLookMs = 0;
  await loop.drive(() => {
    if (loop.monotonicMs() >= nextLookMs) {
      nextLookMs = loop.monotonicMs() + host.tickMs;
      look();
    }
    return world.failure === undefined && loop.monotonicMs() < untilMs;
  });
  if (world.failure !== undefined) throw world.failure;
}

/** The highest term of each group. A campaign raises it, whether it wins or not. */
function terms(world: World): readonly number[] {
  return world.groupIds.map((groupId) => Math.max(...world.nodes.map((node) => node.group(groupId)?.term ?? 0)));
}

/** C1. */
function keepsLeaders(world: World, first: readonly number[]): void {
  for (const [i, term] of terms(world).entries()) {
    if (term === first[i]) continue;
    throw new Violation('no election without a cause', `group ${world.groupAt(i)}: term ${term} after ${first[i]}`);
  }
}

class Disturber {
  readonly fired = new Map<string, number>();
  readonly #world: World;
  readonly #random: Random;
  readonly #pauseMsMax: number;

  constructor(world: World, pauseMsMax: number) {
    this.#world = world;
    this.#random = new SeededRandom(world.seed ^ 0xd157);
    this.#pauseMsMax = pauseMsMax;
  }

  begin(untilMs: number): void {
    for (const node of this.#world.nodes) for (const kind of DISTURBANCES) this.#later(node, kind, untilMs);
  }

  #later(node: SimNode, kind: Disturbance, untilMs: number): void {
    const { loop } = this.#world;
    loop.setTimer(1 + this.#random.int(2 * EVERY_MS[kind]), () => {
      if (loop.monotonicMs() >= untilMs) return;
      this.fired.set(kind, (this.fired.get(kind) ?? 0) + 1);
      const { lastsMs, end } = this.#disturb(node, kind);
      loop.setTimer(lastsMs, () => {
        end();
        this.#later(node, kind, untilMs);
      });
    });
  }

  #disturb(node: SimNode, kind: Disturbance): { readonly lastsMs: number; readonly end: () => void } {
    const random = this.#random;
    switch (kind) {
      case 'slow disk':
        node.disk.setLatency(SLOW_DISK_MS.least + random.int(SLOW_DISK_MS.most - SLOW_DISK_MS.least + 1));
        return { lastsMs: 500 + random.int(20_000), end: () => node.disk.setLatency(FAST_DISK_MS) };
      case 'pause': {
        node.clock.pause();
        return { lastsMs: 1 + random.int(this.#pauseMsMax), end: () => node.clock.resume() };
      }
      case 'late network': {
        const on = (from: number, to: number): boolean => from === node.id || to === node.id;
        const end = this.#world.network.add({ on, faults: { jitterMs: 1 + random.int(LATE_MS_MAX) } });
        return { lastsMs: 500 + random.int(5_000), end };
      }
    }
  }
}

function resultOf(world: World, fired: ReadonlyMap<string, number>): SimResult {
  const { seed, trace, counts, loop, failure } = world;
  const elections = world.groupIds.reduce((sum, id) => sum + world.observer.group(id).elections, 0);
  return {
    ...{ seed, schedule: [], hash: trace.hash, counts: { ...counts }, fired },
    ...{ simulatedMs: loop.monotonicMs(), steps: loop.steps, figures: { elections } },
    ...(failure !== undefined && { failure: failureOf(trace, failure) }),
  };
}
