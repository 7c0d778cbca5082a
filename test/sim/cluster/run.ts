/**
 * One run: load, faults, and the end on a healed cluster, all from one seed.
 *
 * E1. After the last fault, within a bound of virtual time, every group has a leader and every client is served.
 * E2. When the clients rest, all replicas converge to the same state.
 * E3. Then clients leave, and when their sessions and leases have ended nothing of them is left on any node.
 * E4. Then nodes stop, and nothing is left: no timer, no link.
 * E6. If masters schedule, each range then has its replicas on serving nodes, replicas and leaders are spread evenly,
 *     decommissioned nodes have nothing, and all of that stays so (checks/settled.ts).
 * E7. There is no unhandled rejection: it would end its process.
 * E5. Enough of the operations outside total outages were answered (checks/outages.ts): in every run with many of them,
 *     and over many runs.
 */

import { assert } from '@remora/base';
import { MASTER_GROUP } from '@remora/raft';
import { toJsonLines } from '../../checkers/index.ts';
import type { SimHistory } from '../common/cli/simulation.ts';
import { failureOf, type SimFailure } from '../common/failure.ts';
import type { FaultEvent } from '../common/faults/fault.ts';
import { Violation } from '../common/violation.ts';
import { leftovers } from './checks/leaks.ts';
import { tooFewAnswered } from './checks/outages.ts';
import { FIGURES as CHANGE_FIGURES } from './checks/range-changes.ts';
import { differences } from './checks/replicas.ts';
import { asIntended, standOf, unsettled, whyNot } from './checks/settled.ts';
import { sumsOf } from './checks/state-watch.ts';
import { optionsOf } from './options.ts';
import { drawOnly, drawSchedule } from './schedule.ts';
import type { SimClient } from './sdk-client.ts';
import { FIRST_RANGE } from './topology.ts';
import type { OperationCounts } from './workloads/workload.ts';
import { World } from './world.ts';

export interface RunResult {
  readonly seed: number;
  readonly schedule: readonly FaultEvent[];
  /** Equal for equal runs. */
  readonly hash: string;
  readonly counts: Readonly<OperationCounts>;
  readonly fired: ReadonlyMap<string, number>;
  readonly simulatedMs: number;
  readonly steps: number;
  readonly figures: Readonly<Record<string, number>>;
  readonly histories?: readonly SimHistory[];
  readonly failure?: SimFailure;
}

export interface RunChange {
  /** Replaces the drawn faults. */
  readonly schedule?: readonly FaultEvent[];
  /** Restricts the faults to these kinds, which are then frequent. */
  readonly faults?: readonly string[];
  /** How long faults occur, instead of the usual time. */
  readonly runMs?: number;
  /** Returns the requests and answers of clients. */
  readonly histories?: boolean;
}

/** The virtual time within which a healed cluster works again. */
const RECOVERY_MS_MAX = 30_000;
const REST_MS_MAX = 30_000;
/** An unlimited acquire asks for 60 s; its outcome is kept that long, until the next tick of range time. */
const LEAVE_MS_MAX = 75_000;
/** An abort that came before its prepare leaves a mark for the two minutes that a command may be in transit. */
const LEAVE_STEERED_MS_MAX = 140_000;
const STOP_MS_MAX = 20_000;
/** Masters that have lost their leader decide nothing for 15 s (packages/master/src/term/schedule-coordinator.ts). */
const SETTLE_MS_MAX = 120_000;
const STILL_MS = 15_000;
const LINGER_MS = 10_000;
const LOOK_MS = 50;
/** The number of operations outside outages from which on their share is meaningful. */
const ASKED_MIN = 200;
/** Figures of the checks that must have something to check in every run. */
export const CHECKED: readonly string[] = [
  'entries committed',
  'commands applied',
  'answers checked',
  'states compared',
];
/** Figures. */
const ASKED = 'asked outside outages';
const ANSWERED = 'answered of these';

/** Runs a seed, with the faults drawn from it or with the given ones. */
export async function runSeed(seed: number, change: RunChange = {}): Promise<RunResult> {
  const drawn = optionsOf(seed);
  const options = { ...drawn, runMs: change.runMs ?? drawn.runMs };
  const { faults } = change;
  const schedule = change.schedule ?? (faults ? drawOnly(faults, seed, options) : drawSchedule(seed, options));
  const world = new World(seed, options);
  const onUnhandled = (reason: unknown): void => world.fail(new Violation('nothing unhandled', String(reason))); // E7
  process.on('unhandledRejection', onUnhandled);
  try {
    await live(world, schedule);
  } catch (error) {
    world.fail(error);
  } finally {
    process.off('unhandledRejection', onUnhandled);
  }
  return { ...resultOf(world, schedule), ...(change.histories && { histories: historiesOf(world) }) };
}

async function live(world: World, schedule: readonly FaultEvent[]): Promise<void> {
  const { loop, options } = world;
  world.begin();
  world.faults.schedule(schedule);
  await drive(world, () => loop.monotonicMs() < options.runMs);
  world.heal();
  await recover(world);
  world.resting = true;
  served(world);
  await until(world, REST_MS_MAX, 'liveness', () => unfinished(world));
  for (const workload of world.workloads) await within(world, workload.check());
  if (world.options.steered) await settle(world);
  await agree(world);
  world.answers.finish();
  await within(world, Promise.all(world.clients.map((client) => client.close())));
  await until(world, world.options.steered ? LEAVE_STEERED_MS_MAX : LEAVE_MS_MAX, 'nothing leaks', () => left(world));
  await stop(world);
}

/** Continues while `goOn` returns true; throws at the first failure. */
async function drive(world: World, goOn: () => boolean): Promise<void> {
  await world.loop.drive(() => world.failure === undefined && goOn());
  if (world.failure !== undefined) throw world.failure;
}

/** Waits until nothing is missing any more. */
async function until(
  world: World,
  patience: number | { readonly boundMs: number; readonly why: () => string },
  property: string,
  missing: () => string,
): Promise<void> {
  const { loop } = world;
  const { boundMs, why } = typeof patience === 'number' ? { boundMs: patience, why: () => '' } : patience;
  const endMs = loop.monotonicMs() + boundMs;
  let lacking = '';
  let nextLookMs = 0;
  await drive(world, () => {
    if (loop.monotonicMs() < nextLookMs) return true;
    nextLookMs = loop.monotonicMs() + LOOK_MS;
    lacking = missing();
    return lacking !== '' && loop.monotonicMs() < endMs;
  });
  // Nothing may have happened since the last look.
  if (lacking !== '') lacking = missing();
  if (lacking !== '') throw new Violation(property, `${boundMs} ms after the last fault: ${lacking}\n${why()}`.trim());
}

/** E1. */
async function recover(world: World): Promise<void> {
  const served = new Map(world.clients.map((client) => [client.id, client.answered]));
  await until(world, RECOVERY_MS_MAX, 'liveness', () => {
    for (const node of world.nodes) if (!node.up) return `node ${node.id} does not run`;
    for (const groupId of groupsOf(world)) {
      if (world.leaderOf(groupId)?.group(groupId)?.ready !== true) return `group ${groupId} has no leader`;
    }
    const waits = world.clients.find((client) => client.answered === served.get(client.id));
    return waits === undefined ? '' : `client ${waits.id} is not served`;
  });
}

function groupsOf({ options, placement }: World): readonly number[] {
  const ranges = options.steered ? placement.ranges.map(({ rangeId }) => rangeId) : [FIRST_RANGE];
  return [MASTER_GROUP, ...ranges];
}

/** E5. */
function served({ outages }: World): void {
  const few = outages.asked < ASKED_MIN ? '' : tooFewAnswered(outages);
  if (few !== '') throw new Violation('what can be served is', few);
}

/** Operations that wait for something that does not come. */
function unfinished(world: World): string {
  const client = world.clients.find(({ working }) => working);
  if (client !== undefined) return `client ${client.id} does not come to an end, ${waitsFor(client)}`;
  return world.workloads.map((workload) => workload.missing?.() ?? '').find((text) => text !== '') ?? '';
}

function waitsFor({ life }: SimClient): string {
  const asked = [...(life?.waitsFor ?? [])].map(({ what, beganMs }) => `${what} since ${Math.round(beganMs)}`);
  return asked.length === 0 ? 'but waits for no answer' : `waits for ${asked.join(', ')}`;
}

/** Lets time pass until the promise has settled. */
async function within<T>(world: World, promise: T | Promise<T>): Promise<T> {
  let settled: { readonly value: T } | undefined;
  Promise.resolve(promise).then(
    (value) => {
      settled = { value };
    },
    (error: unknown) => world.fail(error),
  );
  await until(world, REST_MS_MAX, 'liveness', () => (settled ? '' : 'the last questions are not answered'));
  assert(settled !== undefined, 'nothing is missing any more');
  return settled.value;
}

/** E6. */
async function settle(world: World): Promise<void> {
  asIntended(world);
  const { loop } = world;
  const endMs = loop.monotonicMs() + SETTLE_MS_MAX;
  for (;;) {
    const boundMs = Math.max(0, endMs - loop.monotonicMs());
    await until(world, { boundMs, why: () => whyNot(world) }, 'balance is reached', () => unsettled(world));
    const before = standOf(world);
    await loop.run(STILL_MS);
    const after = standOf(world);
    if (before === after) return;
    if (loop.monotonicMs() >= endMs)
      throw new Violation('balance is kept', `at rest it became ${after}, and was ${before}`);
  }
}

/** E2. */
async function agree(world: World): Promise<void> {
  const { loop } = world;
  const endMs = loop.monotonicMs() + REST_MS_MAX;
  for (;;) {
    // All rows are read here: one whose bit flipped before the faults ended, and that was not read since, is repaired.
    for (const node of world.nodes) node.undamage();
    const found = differences(await within(world, sumsOf(world.nodes)));
    if (found === '') return;
    if (loop.monotonicMs() >= endMs) throw new Violation('replicas agree', found);
    await loop.run(LOOK_MS);
  }
}

/** E3. */
function left({ nodes, clients, links }: World): string {
  const ours = new Set(clients.map(({ id }) => id));
  return leftovers({ nodes, clientLinks: links.openFrom((id) => ours.has(id)) });
}

/** E4. */
async function stop(world: World): Promise<void> {
  world.over = true;
  let stopped = false;
  const all = async (): Promise<void> => {
    await Promise.all(world.nodes.map((node) => node.stop()));
    stopped = true;
  };
  all().catch((error: unknown) => world.fail(error));
  await until(world, STOP_MS_MAX, 'nothing leaks', () => (stopped ? '' : `${running(world)} does not stop`));
  await world.loop.run(LINGER_MS); // the other end gives up links that a loss of power left
  for (const { id, clock } of [...world.nodes, ...world.clients]) {
    if (clock.pendingTimers > 0)
      throw new Violation('nothing leaks', `process ${id} left ${clock.pendingTimers} timers`);
  }
  if (world.links.open > 0) throw new Violation('nothing leaks', `${world.links.open} links are open`);
}

function running(world: World): string {
  const node = world.nodes.find((one) => !one.down);
  if (node !== undefined) return `node ${node.id}`;
  return `client ${world.clients.find((one) => one.running)?.id}`;
}

function resultOf(world: World, schedule: readonly FaultEvent[]): RunResult {
  const { seed, trace, counts, faults, loop, failure } = world;
  return {
    seed,
    schedule,
    hash: trace.hash,
    counts,
    fired: faults.fired,
    simulatedMs: loop.monotonicMs(),
    steps: loop.steps,
    figures: figuresOf(world),
    ...(failure !== undefined && { failure: failureOf(trace, failure) }),
  };
}

function historiesOf({ workloads }: World): readonly SimHistory[] {
  return workloads.flatMap((workload) => {
    const history = workload.history?.();
    return history === undefined ? [] : [{ name: workload.name, text: toJsonLines(history) }];
  });
}

/** How much the checks had to check. */
function figuresOf(world: World): Readonly<Record<string, number>> {
  const { elections, observer, applied, answers, states, outages, workloads, moves, admin, changes, releases } = world;
  const seen = {
    elections,
    'entries committed': [...observer.groups()].reduce((sum, { committedIndex }) => sum + committedIndex, 0),
    'commands applied': applied.count,
    'answers checked': answers.count,
    'commands sent again': answers.sentAgain,
    'states compared': states.compared,
    [ASKED]: outages.asked,
    [ANSWERED]: outages.answered,
    'refused above a limit': outages.overLimit,
    'replicas moved': moves.moved,
    'moved back to a node': moves.returned,
    'asked for by operators': admin.accepted,
    'refused to operators': admin.refused,
    ...changes.figures(),
    ...(releases !== undefined && { 'upgrades finalized': releases.finalized ? 1 : 0 }),
  };
  return Object.assign(seen, ...workloads.map((workload) => workload.figures?.() ?? {}));
}

/** Why a run over many seeds fails although no promise was broken. */
export function judge(figures: Readonly<Record<string, number>>): readonly string[] {
  const text = tooFewAnswered({ asked: figures[ASKED] ?? 0, answered: figures[ANSWERED] ?? 0 });
  const idle = [...CHANGE_FIGURES, 'read in pages'].filter((name) => (figures[name] ?? 0) === 0);
  return [...(text === '' ? [] : [text]), ...idle.map((name) => `never happened: ${name}`)];
}
