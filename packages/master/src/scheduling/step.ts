/**
 * The steps of operators. Given the current state of a range, a step reports whether it is finished, what to instruct
 * the range's leader, what to wait for, or why it is no longer possible.
 *
 * S1. A step identifies replicas by their nodes: a range has at most one replica on a node. The instruction to the
 *     leader names the current replica ids, so a late instruction cannot affect another replica.
 * S2. After a change of voters, and while it is joint, more than half of the voters are live. So no step of an operator
 *     makes a range lose its quorum. Nodes in maintenance do not count for this majority, because each may go down at
 *     any moment; that all of them may go down together was checked for the members before the change.
 * S3. A learner is promoted only after the leader reports that it has caught up (traps 3).
 * S4. Leadership moves only to a live voter that has caught up, on a node that is up and accepts leaders.
 * S5. A split at a key is finished when a range starts at that key, by whatever split. No other split finishes it.
 * S6. Voters leave only if more than half of the remaining voters have caught up: otherwise the leaving voters might be
 *     the only ones besides the leader that hold recent entries. The step waits for this as it waits for a learner.
 */
import { type Bytes, compareBytes, unreachable } from '@remora/base';
import type { RangeInstruction } from '@remora/protocol';
import { type ClusterView, isLive, progressOn, type RangeInfo, replicaOn, voterNodes } from './cluster-model.ts';
import type { Settings } from './settings.ts';

export type Step =
  | { readonly type: 'addLearner'; readonly nodeId: number }
  /**
   * Learners become voters while voters leave: one configuration replaces the other, in a joint change if more than one
   * voter changes.
   */
  | { readonly type: 'changeVoters'; readonly promote: readonly number[]; readonly remove: readonly number[] }
  | { readonly type: 'leaveJoint' }
  | { readonly type: 'transferLeader'; readonly nodeId: number }
  /** At a key, or in the middle. `version` is the range's version when the step was planned. */
  | { readonly type: 'split'; readonly at: Bytes | undefined; readonly version: number }
  /**
   * The next range ends; this one takes its keys. So a range always begins where it began first (range-registry.ts
   * RR3). `version` is this range's version when the step was planned. Refused if the two have more than `bytesMax`; 0:
   * no limit.
   */
  | { readonly type: 'merge'; readonly source: number; readonly version: number; readonly bytesMax: number };

/** An instruction for a range's leader. It is repeated until reports show that it is done, so it must be idempotent. */
export type Instruction = Exclude<RangeInstruction, { type: 'demote' }>;

export type StepStatus =
  | { readonly type: 'finished' }
  | { readonly type: 'tell'; readonly instruction: Instruction }
  | { readonly type: 'wait'; readonly reason: string }
  | { readonly type: 'impossible'; readonly reason: string };

export interface StepContext {
  readonly model: ClusterView;
  readonly settings: Settings;
}

const FINISHED: StepStatus = { type: 'finished' };

/** The status of a step. `replicaId` is the id drawn for the replica that the step adds. */
export function stepStatus(step: Step, range: RangeInfo, context: StepContext, replicaId: number): StepStatus {
  if (range.joint && step.type !== 'leaveJoint') return wait('the range must leave its joint configuration first');
  switch (step.type) {
    case 'addLearner':
      return addLearnerStatus(step.nodeId, range, context, replicaId);
    case 'changeVoters':
      return changeVotersStatus(step, range, context);
    case 'leaveJoint':
      return range.joint ? tell({ type: 'leaveJoint' }) : FINISHED;
    case 'transferLeader':
      return transferStatus(step.nodeId, range, context);
    case 'split':
      return splitStatus(step, range, context);
    case 'merge':
      return mergeStatus(step, range, context);
    default:
      return unreachable(step);
  }
}

function addLearnerStatus(nodeId: number, range: RangeInfo, context: StepContext, replicaId: number): StepStatus {
  const there = replicaOn(range, nodeId);
  if (there !== undefined) {
    return there.replicaId === replicaId ? FINISHED : impossible(`node ${nodeId} already has another replica`);
  }
  const unfit = notServing(context.model, nodeId);
  return unfit === undefined ? tell({ type: 'addLearner', nodeId, replicaId }) : impossible(`node ${nodeId} ${unfit}`);
}

function changeVotersStatus(
  step: Extract<Step, { type: 'changeVoters' }>,
  range: RangeInfo,
  context: StepContext,
): StepStatus {
  const promote = step.promote.filter((nodeId) => replicaOn(range, nodeId)?.type !== 'voter');
  const remove = step.remove.filter((nodeId) => replicaOn(range, nodeId) !== undefined);
  if (promote.length === 0 && remove.length === 0) return FINISHED;
  const missing = promote.find((nodeId) => replicaOn(range, nodeId) === undefined);
  if (missing !== undefined) return impossible(`the learner on node ${missing} is gone`);
  const lost = quorumProblem(range, context.model, { promote, remove });
  if (lost !== undefined) return impossible(lost);
  const gone = promote.find((nodeId) => context.model.node(nodeId)?.info.duty === 'removed');
  if (gone !== undefined) return impossible(`node ${gone} was removed`);
  const behind = promote.find((nodeId) => !hasCaughtUp(range, nodeId));
  if (behind !== undefined) return wait(`the learner on node ${behind} has not caught up`); // S3
  const lagging = lagProblem(range, { promote, remove });
  if (lagging !== undefined) return wait(lagging); // S6
  if (range.leader !== undefined && remove.includes(range.leader)) {
    return impossible(`the replica on node ${range.leader} leads the range, and would be removed`);
  }
  return tell({ type: 'changeVoters', promote: replicaIds(range, promote), remove: replicaIds(range, remove) });
}

interface VoterChange {
  readonly promote: readonly number[];
  readonly remove: readonly number[];
}

/** S2: why a change of voters would leave the range, or the joint configuration on the way, without a live quorum. */
export function quorumProblem(range: RangeInfo, model: ClusterView, change: VoterChange): string | undefined {
  const voters = voterNodes(range);
  const after = [...voters.filter((nodeId) => !change.remove.includes(nodeId)), ...change.promote];
  if (after.length === 0) return 'no voter would be left';
  if (after.length === voters.length && after.every((nodeId) => voters.includes(nodeId))) return undefined; // learners only
  const live = (nodeId: number): boolean => isLive(model, range, nodeId);
  const stays = (nodeId: number): boolean => live(nodeId) && model.node(nodeId)?.info.duty !== 'maintenance';
  const rests = after.some((nodeId) => live(nodeId) && !stays(nodeId));
  return lacking(voters, live, 'live') ?? lacking(after, stays, rests ? 'live, and not in maintenance' : 'live');
}

/** S6: why voters cannot leave yet; undefined if they can. */
function lagProblem(range: RangeInfo, { promote, remove }: VoterChange): string | undefined {
  const voters = voterNodes(range);
  const left = voters.filter((nodeId) => !remove.includes(nodeId));
  if (left.length === voters.length) return undefined;
  const lagging = left.filter((nodeId) => nodeId !== range.leader && !hasCaughtUp(range, nodeId));
  const after = left.length + promote.filter((nodeId) => !voters.includes(nodeId)).length;
  if (after - lagging.length > after / 2) return undefined;
  return `too many of the remaining voters, on nodes ${lagging.join(', ')}, have not caught up`;
}

/** Whether no more than half of the voters satisfy the condition. */
function lacking(voters: readonly number[], is: (nodeId: number) => boolean, what: string): string | undefined {
  const found = voters.filter(is);
  if (found.length > voters.length / 2) return undefined;
  return `only ${found.length} of the ${voters.length} voters on nodes ${voters.join(', ')} would be ${what}`;
}

function transferStatus(nodeId: number, range: RangeInfo, context: StepContext): StepStatus {
  if (range.leader === nodeId) return FINISHED;
  const unable = unableToLead(range, nodeId, context);
  const replicaId = replicaOn(range, nodeId)?.replicaId;
  if (unable !== undefined || replicaId === undefined) return impossible(unable ?? `node ${nodeId} has no replica`);
  // A voter that has just been promoted, or whose range was just split, lags for a moment.
  if (!hasCaughtUp(range, nodeId)) return wait(lagText(nodeId));
  return tell({ type: 'transferLeader', replicaId });
}

/** S4: why a range's leadership cannot move to a node now; undefined if it can. */
export function refusesLeader(range: RangeInfo, nodeId: number, context: StepContext): string | undefined {
  return unableToLead(range, nodeId, context) ?? (hasCaughtUp(range, nodeId) ? undefined : lagText(nodeId));
}

function lagText(nodeId: number): string {
  return `the replica on node ${nodeId} lags behind`;
}

/** Reasons that do not pass without intervention. */
function unableToLead(range: RangeInfo, nodeId: number, { model }: StepContext): string | undefined {
  if (replicaOn(range, nodeId)?.type !== 'voter') return `node ${nodeId} has no voter of the range`;
  const unfit = notServing(model, nodeId);
  if (unfit !== undefined) return `node ${nodeId} ${unfit}`;
  return isLive(model, range, nodeId) ? undefined : `the replica on node ${nodeId} is silent`;
}

/** Why a node takes nothing new, as in "node 4 is draining"; undefined if it does. */
export function notServing(model: ClusterView, nodeId: number): string | undefined {
  const info = model.node(nodeId)?.info;
  if (info === undefined) return 'is unknown';
  if (info.duty !== 'serving') return info.duty === 'maintenance' ? 'is in maintenance' : `is ${info.duty}`;
  return info.liveness === 'up' ? undefined : `is ${info.liveness}`;
}

/**
 * A new version may result from another split, by size or load: for a split at a key, the borders are searched for the
 * key (S5).
 */
function splitStatus(
  step: Extract<Step, { type: 'split' }>,
  range: RangeInfo,
  { model }: Pick<StepContext, 'model'>,
): StepStatus {
  const { start, end, epoch } = range.descriptor;
  const changed = epoch.version > step.version;
  const { at } = step;
  if (at === undefined) return changed ? FINISHED : tell({ type: 'split', at });
  if (compareBytes(start, at) < 0 && (end.length === 0 || compareBytes(at, end) < 0))
    return tell({ type: 'split', at });
  if (!changed) return impossible('the split key is outside the range or on its border');
  const begins = [...model.ranges()].some(({ descriptor }) => compareBytes(descriptor.start, at) === 0);
  if (begins || compareBytes(end, at) === 0) return FINISHED;
  return impossible(
    'the range was split or merged in the meantime, and the split key is now in another range: try again',
  );
}

function mergeStatus(
  step: Extract<Step, { type: 'merge' }>,
  range: RangeInfo,
  { model }: Pick<StepContext, 'model'>,
): StepStatus {
  const source = model.range(step.source);
  const grew = range.descriptor.epoch.version > step.version;
  if (source === undefined) return grew ? FINISHED : impossible(`range ${step.source} no longer exists`);
  if (grew) return impossible('the range was split or merged in the meantime');
  if (model.neighbour(range.descriptor.rangeId) !== source) {
    return impossible(`range ${step.source} does not start where range ${range.descriptor.rangeId} ends`);
  }
  const [mine, theirs] = [voterNodes(range), voterNodes(source)];
  if (mine.length !== theirs.length || !mine.every((nodeId) => theirs.includes(nodeId))) {
    return impossible(`range ${step.source} is on other nodes: ${theirs.join(', ')}, not ${mine.join(', ')}`);
  }
  if (source.joint || source.changePending) return wait(`the membership of range ${step.source} is changing`);
  return tell({ type: 'merge', source: source.descriptor, bytesMax: step.bytesMax });
}

/**
 * Whether a replica can become a voter, or the leader. The leader of the range decides that, because it would refuse
 * otherwise.
 */
export function hasCaughtUp(range: RangeInfo, nodeId: number): boolean {
  return progressOn(range, nodeId)?.caughtUp === true;
}

// ------------------------------------------------------------------------------------------------ what steps change

/** The members with their roles, by node. */
export type Members = ReadonlyMap<number, 'voter' | 'learner'>;

export function membersOf(range: RangeInfo): Members {
  return new Map(range.descriptor.replicas.map(({ nodeId, type }) => [nodeId, type]));
}

export function membersAfter(step: Step, members: Members): Members {
  const after = new Map(members);
  if (step.type === 'addLearner') after.set(step.nodeId, 'learner');
  if (step.type !== 'changeVoters') return after;
  for (const nodeId of step.promote) after.set(nodeId, 'voter');
  for (const nodeId of step.remove) after.delete(nodeId);
  return after;
}

/**
 * Whether members are in transition between two states: each has its old or its new role. A voter that leaves is a
 * learner for a moment, so that it learns of its removal.
 */
export function isOnTheWay(now: Members, from: Members, to: Members): boolean {
  return [...new Set([...now.keys(), ...from.keys(), ...to.keys()])].every((nodeId) => {
    const [is, was, will] = [now.get(nodeId), from.get(nodeId), to.get(nodeId)];
    return is === was || is === will || (is === 'learner' && was === 'voter' && will === undefined);
  });
}

/** The time limit of a step: for the data that it moves, and for what it waits for. */
export function stepTimeoutMs(step: Step, range: RangeInfo | undefined, settings: Settings): number {
  const copyMs = (1_000 * (range?.bytes ?? 0)) / settings.snapshotBytesPerS;
  switch (step.type) {
    case 'addLearner':
    case 'leaveJoint':
      return 60_000;
    case 'changeVoters':
      return 120_000 + (step.promote.length > 0 ? copyMs : 0);
    case 'transferLeader':
      return 30_000;
    case 'split':
    case 'merge':
      return 120_000;
    default:
      return unreachable(step);
  }
}

export function describeStep(step: Step): string {
  switch (step.type) {
    case 'addLearner':
      return `add a learner on node ${step.nodeId}`;
    case 'changeVoters':
      return describeChange(step);
    case 'leaveJoint':
      return 'leave the joint configuration';
    case 'transferLeader':
      return `transfer the leader to node ${step.nodeId}`;
    case 'split':
      return step.at === undefined ? 'split in the middle' : 'split at the given key';
    case 'merge':
      return `take over range ${step.source}`;
    default:
      return unreachable(step);
  }
}

function describeChange({ promote, remove }: Extract<Step, { type: 'changeVoters' }>): string {
  const parts: string[] = [];
  if (promote.length > 0) parts.push(`promote node ${promote.join(', ')}`);
  if (remove.length > 0) parts.push(`remove node ${remove.join(', ')}`);
  return parts.join(' and ');
}

function replicaIds(range: RangeInfo, nodeIds: readonly number[]): readonly number[] {
  return nodeIds.flatMap((nodeId) => replicaOn(range, nodeId)?.replicaId ?? []);
}

function tell(instruction: Instruction): StepStatus {
  return { type: 'tell', instruction };
}

function wait(reason: string): StepStatus {
  return { type: 'wait', reason };
}

function impossible(reason: string): StepStatus {
  return { type: 'impossible', reason };
}
