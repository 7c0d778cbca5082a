/** The faults of a run, drawn from its seed. */
import { type Random, SeededRandom } from '@remora/base';
import { DRAW_MAX, type Fault, type FaultEvent } from '../common/faults/fault.ts';
import { seedOf } from '../common/hash.ts';
import { AUTH_FAULTS } from './faults/auth-faults.ts';
import { FAULTS, FREQUENT_FAULTS, LONG_FAULTS } from './faults/index.ts';
import { MOVE_FAULTS } from './faults/move-faults.ts';
import { RANGE_FAULTS } from './faults/range-faults.ts';
import type { ClusterOptions } from './options.ts';
import { isMoving } from './topology.ts';
import { QUIET_MS } from './users.ts';
import type { World } from './world.ts';

/** Faults in ten seconds of one run, from few to many. */
const RATES = [3, 8, 20] as const;
const LONG_RATES = [0.5] as const;
const MOVE_RATES = [2, 4] as const;
const RANGE_RATES = [4, 8, 12] as const;

const BY_KIND = new Map(FAULTS.map((fault) => [fault.kind, fault]));

export function faultOf(kind: string): Fault<World> {
  const fault = BY_KIND.get(kind);
  if (fault === undefined) throw new Error(`there is no fault '${kind}'`);
  return fault;
}

interface Kinds {
  readonly faults: readonly Fault<World>[];
  /** Per ten seconds; a run uses one of them. */
  readonly rates: readonly number[];
  /** Of the faults; drawn for each run where they are absent. */
  readonly weights?: readonly number[];
}

const STEERING: Kinds = { faults: [...RANGE_FAULTS.keys()], rates: RANGE_RATES, weights: [...RANGE_FAULTS.values()] };

export function drawSchedule(seed: number, options: ClusterOptions): readonly FaultEvent[] {
  const events = [...drawFaults(seed, options), ...(options.authenticated ? drawAlone(seed) : [])];
  return events.sort((x, y) => x.atMs - y.atMs);
}

/** One of each, as soon as users are there: they last for most of the run. */
function drawAlone(seed: number): readonly FaultEvent[] {
  const random = new SeededRandom(seedOf(seed, 0xa1c4));
  return AUTH_FAULTS.map((fault) => ({
    ...{ atMs: QUIET_MS + random.int(1_000), kind: fault.kind, lastsMs: fault.lastsMs(random, 0) },
    ...{ a: random.int(DRAW_MAX), b: random.int(DRAW_MAX), c: random.int(DRAW_MAX) },
  }));
}

function drawFaults(seed: number, options: ClusterOptions): readonly FaultEvent[] {
  const frequent = new SeededRandom(seedOf(seed, 0x5eed));
  const long = new SeededRandom(seedOf(seed, 0x10ca));
  const moves = new SeededRandom(seedOf(seed, 0x30e5));
  return [
    ...drawEvents(frequent, { faults: FREQUENT_FAULTS, rates: RATES }, options),
    ...drawEvents(long, { faults: LONG_FAULTS, rates: LONG_RATES }, options),
    ...(isMoving(seed)
      ? drawEvents(moves, { faults: MOVE_FAULTS, rates: MOVE_RATES, weights: [4, 1, 1] }, options)
      : []),
    ...(options.steered ? drawEvents(new SeededRandom(seedOf(seed, 0x57ee)), STEERING, options) : []),
  ];
}

/** Only faults of these kinds, often. Those that last for most of the run come once. */
export function drawOnly(kinds: readonly string[], seed: number, options: ClusterOptions): readonly FaultEvent[] {
  const alone = drawAlone(seed).filter(({ kind }) => kinds.includes(kind));
  const others = kinds.filter((kind) => alone.every((event) => event.kind !== kind));
  const random = new SeededRandom(seedOf(seed, 0x0417));
  const frequent = { faults: others.map(faultOf), rates: [8], weights: others.map(() => 1) };
  return [...alone, ...drawEvents(random, frequent, options)].sort((x, y) => x.atMs - y.atMs);
}

/** Each kind has a rate of its own in each run: many are absent, some are frequent. */
function drawEvents(random: Random, kinds: Kinds, options: ClusterOptions): readonly FaultEvent[] {
  const { faults, rates } = kinds;
  const weights = kinds.weights ?? faults.map(() => (random.int(2) === 0 ? 0 : 1 << random.int(4)));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  if (total === 0) return [];
  const per10s = rates[random.int(rates.length)] ?? 1;
  const events: FaultEvent[] = [];
  for (let atMs = options.authenticated ? QUIET_MS : options.electionMs; ; ) {
    atMs += random.int(Math.ceil(20_000 / per10s));
    if (atMs >= options.runMs) return events;
    const fault = weighted(random, { faults, weights, total });
    const lastsMs = fault.lastsMs(random, options.electionMs);
    const [a, b, c] = [random.int(DRAW_MAX), random.int(DRAW_MAX), random.int(DRAW_MAX)];
    events.push({ atMs, kind: fault.kind, lastsMs, a, b, c });
  }
}

function weighted(
  random: Random,
  drawn: { readonly faults: Kinds['faults']; readonly weights: readonly number[]; readonly total: number },
): Fault<World> {
  const { faults, weights, total } = drawn;
  let left = random.int(total);
  for (const [i, fault] of faults.entries()) {
    left -= weights[i] ?? 0;
    if (left < 0) return fault;
  }
  throw new Error('the weights add up');
}
