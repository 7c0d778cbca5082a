/** The faults of a run, drawn from its seed. */
import { type Random, SeededRandom } from '@remora/base';
import { DISK_FAULTS } from '../common/faults/disk-faults.ts';
import { DRAW_MAX, type Fault, type FaultEvent } from '../common/faults/fault.ts';
import { NETWORK_FAULTS } from '../common/faults/network-faults.ts';
import { PROCESS_FAULTS } from '../common/faults/process-faults.ts';
import { LEADER_FAULTS } from './faults/leader-faults.ts';
import { LEASE_FAULTS } from './faults/lease-faults.ts';
import { MEMBER_FAULTS } from './faults/member-faults.ts';
import { RAFT_FAULTS } from './faults/raft-faults.ts';
import type { WorldOptions } from './options.ts';
import type { World } from './world.ts';

const GENERAL_FAULTS: readonly Fault<World>[] = [
  ...NETWORK_FAULTS,
  ...PROCESS_FAULTS,
  ...DISK_FAULTS,
  ...RAFT_FAULTS,
  ...MEMBER_FAULTS,
  ...LEADER_FAULTS,
];

/** All kinds. Faults about leases happen in separate runs. */
export const FAULTS: readonly Fault<World>[] = [...GENERAL_FAULTS, ...LEASE_FAULTS];

const BY_KIND = new Map(FAULTS.map((fault) => [fault.kind, fault]));

export function faultOf(kind: string): Fault<World> {
  const fault = BY_KIND.get(kind);
  if (fault === undefined) throw new Error(`there is no fault '${kind}'`);
  return fault;
}

/** Faults per second in a run, from calm to wild. */
const RATES = [1, 3, 6, 10] as const;

/** Kinds of faults that depend on another kind, and must not happen without it. */
const FOLLOW_UPS: ReadonlyMap<string, readonly string[]> = new Map([
  ['learner promoted', ['learner added', 'voter demoted']],
  ['joint configuration left', ['replica replaced, left by hand', 'many members changed']],
]);

export function drawSchedule(seed: number, options: WorldOptions): readonly FaultEvent[] {
  const random = new SeededRandom(seed ^ 0x5eed);
  return options.leases ? drawLeaseFaults(random, options) : drawFaults(random, options);
}

/** Each kind has its own rate in each run: many are absent, and some are frequent. */
function drawFaults(random: Random, options: WorldOptions): readonly FaultEvent[] {
  // In some runs, only the faults that hurt leaders most happen, because others would interfere.
  const only = random.int(3) === 0 ? new Set(LEADER_FAULTS) : undefined;
  const drawn = GENERAL_FAULTS.map((fault) => {
    const weight = random.int(2) === 0 ? 0 : 1 << random.int(4);
    return only === undefined || only.has(fault) ? weight : weight >> 3;
  });
  const weightOf = (kind: string): number => drawn[GENERAL_FAULTS.findIndex((fault) => fault.kind === kind)] ?? 0;
  const weights = GENERAL_FAULTS.map(({ kind }, i) =>
    Math.max(drawn[i] ?? 0, ...(FOLLOW_UPS.get(kind) ?? []).map(weightOf)),
  );
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  if (total === 0) return [];
  const perSecond = RATES[random.int(RATES.length)] ?? 1;
  const events: FaultEvent[] = [];
  let atMs = options.electionMs;
  for (;;) {
    atMs += random.int(Math.ceil(2_000 / perSecond));
    if (atMs >= options.runMs) return events;
    events.push(eventOf(weighted(random, weights, total), atMs, random, options));
  }
}

/** One fault after the other, with enough time in between for a leader and its lease. */
function drawLeaseFaults(random: Random, options: WorldOptions): readonly FaultEvent[] {
  const { electionMs } = options;
  const events: FaultEvent[] = [];
  let atMs = 4 * electionMs;
  while (atMs < options.runMs) {
    const fault = LEASE_FAULTS[random.int(LEASE_FAULTS.length)];
    if (fault === undefined) break;
    const event = eventOf(fault, atMs, random, options);
    events.push(event);
    atMs += event.lastsMs + electionMs + random.int(electionMs);
  }
  return events;
}

function eventOf(fault: Fault<World>, atMs: number, random: Random, options: WorldOptions): FaultEvent {
  const lastsMs = fault.lastsMs(random, options.electionMs);
  return { atMs, kind: fault.kind, lastsMs, a: draw(random), b: draw(random), c: draw(random) };
}

function draw(random: Random): number {
  return random.int(DRAW_MAX);
}

function weighted(random: Random, weights: readonly number[], total: number): Fault<World> {
  let left = random.int(total);
  for (const [i, fault] of GENERAL_FAULTS.entries()) {
    left -= weights[i] ?? 0;
    if (left < 0) return fault;
  }
  throw new Error('the weights add up');
}
