/**
 * One run: load and faults, then the end on a healed cluster. All of it comes from one seed.
 *
 * E1. Within a bounded virtual time after the last fault, each group has a leader, has acknowledged a new write, and
 *     has replicas that all agree.
 * E2. Then nothing is in progress any more: no snapshot occupies its slot, and no read its queue.
 * E3. Then the nodes stop, and nothing is left: no timer, and no promise that never settles.
 */
import { SeededRandom } from '@remora/base';
import { confChange, LEAVE_JOINT } from '../../../packages/raft/src/core/membership/conf-change.ts';
import { isJoint, isMember, membersOf } from '../../../packages/raft/src/core/membership/membership.ts';
import { failureOf, type SimFailure } from '../common/failure.ts';
import type { FaultEvent } from '../common/faults/fault.ts';
import { Violation } from '../common/violation.ts';
import { Client, LeaseWatch, Prober } from './client.ts';
import type { SimNode } from './node.ts';
import type { OperationCounts } from './operations.ts';
import { optionsOf } from './options.ts';
import { drawSchedule } from './schedule.ts';
import { World } from './world.ts';

export interface RunResult {
  readonly seed: number;
  readonly schedule: readonly FaultEvent[];
  /** Equal runs have equal hashes. */
  readonly hash: string;
  readonly counts: Readonly<OperationCounts>;
  readonly fired: ReadonlyMap<string, number>;
  readonly simulatedMs: number;
  readonly steps: number;
  readonly figures: Readonly<Record<string, number>>;
  readonly failure?: SimFailure;
}

/** A healed cluster works again within this virtual time. */
const RECOVERY_MS_MAX = 20_000;
const REST_MS_MAX = 10_000;
const STOP_MS_MAX = 10_000;

/** Settings of a run that are not drawn from its seed. */
export interface RunChange {
  readonly schedule?: readonly FaultEvent[];
  readonly runMs?: number;
}

/** Runs a seed, with the faults that it draws or with the given ones. */
export async function runSeed(seed: number, change: RunChange = {}): Promise<RunResult> {
  const drawn = optionsOf(seed);
  const options = { ...drawn, runMs: change.runMs ?? drawn.runMs };
  const schedule = change.schedule ?? drawSchedule(seed, options);
  const world = new World(seed, options);
  try {
    await live(world, schedule);
  } catch (error) {
    world.fail(error);
  }
  return resultOf(world, schedule);
}

async function live(world: World, schedule: readonly FaultEvent[]): Promise<void> {
  const { loop, options } = world;
  world.begin();
  world.faults.schedule(schedule);
  const random = new SeededRandom(world.seed ^ 0xc11e27);
  for (let i = 0; i < options.clients; i++) new Client(world, random).run(options.runMs);
  new Prober(world, random).run(options.runMs);
  if (options.leases) new LeaseWatch(world).run(options.runMs);
  await drive(world, () => loop.monotonicMs() < options.runMs);
  // E1 also holds for a bare majority. One more node may contribute what is missing.
  world.heal(random.int(2) === 0 ? world.nodeAt(random.int(world.nodes.length)) : undefined);
  if (world.keptDown !== undefined) await recover(world, bareLacks);
  world.healAll();
  await recover(world, lacks);
  await rest(world);
  await stop(world);
}

/** Continues while `goOn` returns true. Throws at the first failure. */
async function drive(world: World, goOn: () => boolean): Promise<void> {
  await world.loop.drive(() => world.failure === undefined && goOn());
  if (world.failure !== undefined) throw world.failure;
}

/** E1. */
async function recover(world: World, lacking: typeof lacks): Promise<void> {
  const { loop } = world;
  const untilMs = loop.monotonicMs() + RECOVERY_MS_MAX;
  let missing = '';
  const written = new Set<number>();
  let nextLookMs = 0;
  await drive(world, () => {
    if (loop.monotonicMs() < nextLookMs) return true;
    nextLookMs = loop.monotonicMs() + 20;
    missing = '';
    for (const groupId of world.groupIds) missing ||= lacking(world, groupId, written);
    return missing !== '' && loop.monotonicMs() < untilMs;
  });
  if (missing !== '') throw new Violation('liveness', `${RECOVERY_MS_MAX} ms after the last fault: ${missing}`);
}

/** What keeps a group from working. */
function bareLacks(world: World, groupId: number, written: Set<number>): string {
  const leader = world.leaderOf(groupId);
  if (leader === undefined) return `without node ${world.keptDown?.id} group ${groupId} has no leader`;
  if (written.has(groupId)) return '';
  lastWrite(world, groupId, written);
  return `without node ${world.keptDown?.id} group ${groupId} has not acknowledged a write`;
}

/** What keeps a group from being healthy. Empty if it is healthy. Also does what an operator would do. */
function lacks(world: World, groupId: number, written: Set<number>): string {
  const down = world.nodes.find((node) => !node.up);
  if (down !== undefined) return `node ${down.id} is not up`;
  const leader = world.leaderOf(groupId);
  const status = leader?.group(groupId)?.status();
  if (leader === undefined || status === undefined) return `group ${groupId} has no leader`;
  const changing = mend(leader, groupId, world);
  if (changing !== '') return `group ${groupId}: ${changing}`;
  if (!written.has(groupId)) {
    lastWrite(world, groupId, written);
    return `group ${groupId} has not acknowledged a write`;
  }
  world.tidy(groupId);
  const theirs = leader.machines.get(groupId)?.state;
  if (theirs?.applied.index !== status.lastIndex) return `group ${groupId}: its leader has not applied everything`;
  for (const node of world.nodes) {
    const id = node.engine.record(groupId)?.replicaId;
    if (id === undefined) continue;
    if (!isMember(status.conf, id)) return `group ${groupId}: replica ${id} is not taken away`;
    const state = node.machines.get(groupId)?.state;
    if (state?.applied.index !== status.lastIndex) {
      return `group ${groupId}: node ${node.id} has applied ${state?.applied.index} of ${status.lastIndex}`;
    }
    if (state.checksum !== theirs.checksum) {
      throw new Violation('state machine safety', `group ${groupId}: node ${node.id} ends with another state`);
    }
  }
  return '';
}

/** Repairs what membership changes left: joint configurations that are not left, members that are lost. */
function mend(leader: SimNode, groupId: number, world: World): string {
  const conf = leader.group(groupId)?.status().conf;
  if (conf === undefined) return '';
  if (isJoint(conf)) {
    if (!conf.autoLeave) leader.enter((host) => host.group(groupId)?.proposeConf(LEAVE_JOINT));
    return 'its configuration is joint';
  }
  const replica = membersOf(conf).find((id) => world.isLost(id));
  if (replica === undefined) return '';
  leader.enter((host) => host.group(groupId)?.proposeConf(confChange([{ type: 'remove', replica }])));
  return `replica ${replica} is lost and a member`;
}

function lastWrite(world: World, groupId: number, written: Set<number>): void {
  const leader = world.leaderOf(groupId);
  leader?.enter((host) => {
    const data = Buffer.alloc(4);
    data.writeUInt32BE(world.nextValue());
    const result = host.group(groupId)?.propose(data);
    if (result === undefined || 'refused' in result) return;
    leader.machines.get(groupId)?.whenApplied(result.index, result.term, (applied) => {
      if (applied) written.add(groupId);
    });
  });
}

/** E2. */
async function rest(world: World): Promise<void> {
  const { loop } = world;
  const untilMs = loop.monotonicMs() + REST_MS_MAX;
  await drive(world, () => inFlight(world) !== '' && loop.monotonicMs() < untilMs);
  const left = inFlight(world);
  if (left !== '') throw new Violation('nothing leaks', `${REST_MS_MAX} ms after the last write: ${left}`);
}

/** Work that hosts have begun and not ended. */
function inFlight(world: World): string {
  const found = world.nodes.flatMap(({ id, host }) =>
    Object.entries(host?.inFlight() ?? {})
      .filter(([, count]) => count > 0)
      .map(([what, count]) => `node ${id}: ${count} ${what}`),
  );
  return found.join(', ');
}

/** E3. */
async function stop(world: World): Promise<void> {
  const { loop } = world;
  const untilMs = loop.monotonicMs() + STOP_MS_MAX;
  world.over = true;
  const left = new Set(world.nodes.map((node) => node.id));
  for (const node of world.nodes) {
    node.stop().then(
      () => left.delete(node.id),
      (error: unknown) => world.fail(error),
    );
  }
  await drive(world, () => left.size > 0 && loop.monotonicMs() < untilMs);
  if (left.size > 0) throw new Violation('nothing leaks', `nodes ${[...left].join(', ')} do not stop`);
  await drive(world, () => loop.pendingTimers > 0 && loop.monotonicMs() < untilMs);
  for (const node of world.nodes) {
    if (node.clock.pendingTimers > 0) {
      throw new Violation('nothing leaks', `node ${node.id} left ${node.clock.pendingTimers} timers`);
    }
  }
}

function resultOf(world: World, schedule: readonly FaultEvent[]): RunResult {
  const { seed, trace, counts, faults, loop, failure } = world;
  const elections = world.groupIds.reduce((sum, id) => sum + world.observer.group(id).elections, 0);
  return {
    seed,
    schedule,
    hash: trace.hash,
    counts,
    fired: faults.fired,
    simulatedMs: loop.monotonicMs(),
    steps: loop.steps,
    figures: {
      elections,
      'snapshots installed': world.snapshots.installed,
      'snapshots broken off': world.snapshots.broken,
    },
    ...(failure !== undefined && { failure: describe(world, failure) }),
  };
}

function describe(world: World, failure: unknown): SimFailure {
  const shown = failureOf(world.trace, failure);
  return { ...shown, last: [...shown.last, ...stateLines(world)] };
}

/** The final state of each replica, one line each. */
function stateLines(world: World): string[] {
  return world.nodes.flatMap((node) =>
    node.groupIds.map((groupId) => {
      const status = node.group(groupId)?.status();
      if (status === undefined) return `node ${node.id} group ${groupId}: down`;
      const { replicaId, role, term, commit, applied, lastIndex, firstIndex, conf, progress } = status;
      const { voters, votersOutgoing, learners } = conf;
      const followers = progress.map(
        (pr) => `${pr.replica} ${pr.state} ${pr.match}→${pr.next}${pr.active ? '' : ' silent'}`,
      );
      return (
        `node ${node.id} group ${groupId}: replica ${replicaId} ${role} of term ${term}, log ${firstIndex}..${lastIndex}, ` +
        `commit ${commit}, applied ${applied}, voters ${voters.join()}/${votersOutgoing.join()}, ` +
        `learners ${learners.join()} ${followers.join('; ')}`
      );
    }),
  );
}
