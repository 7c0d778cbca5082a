/**
 * Chooses the replicas that continue groups without a majority, from the answers of all remaining nodes.
 *
 * RP1. The replica of a group with the best log continues: the later last term, then the higher last index. It has all
 *      that any other replica has applied (raft/core/forced.test.ts). Among equal ones, the one with the lowest id
 *      continues, so that concurrent recoveries through several gateways choose the same.
 * RP2. A group has lost its majority if its best replica hears no leader, and at most half of the voters that it knows
 *      (in one of the two sets if the configuration is joint) are on remaining nodes.
 * RP3. No replica continues with keys that another range, living or dead, has with a later version: the replica has not
 *      applied a split or a merge that others have.
 */
import { equalBytes, type Span, spanContains } from '@remora/base';
import { type Epoch, type HeldGroup, MASTERS, type NodeGroups, type RangeDescriptor } from '@remora/protocol';

/** A group that has lost its majority. */
export interface LostGroup {
  readonly groupId: number;
  /** The range; undefined for the masters. */
  readonly range: RangeDescriptor | undefined;
  /** The nodes whose replicas vote. */
  readonly voters: readonly number[];
  /** The node of the replica that continues, and its state. */
  readonly survivor: number;
  readonly replicaId: number;
  readonly lastTerm: number;
  readonly lastIndex: number;
  /** The latest known epoch. */
  readonly epoch: Epoch;
  /** The nodes whose replicas are given up. */
  readonly givenUp: readonly number[];
}

/** A range that cannot be recovered. */
export interface UnrecoverableRange {
  readonly range: Pick<RangeDescriptor, 'rangeId'> & Span;
  readonly reason: string;
}

export interface RecoveryPlan {
  readonly masters: LostGroup | undefined;
  readonly ranges: readonly LostGroup[];
  readonly unrecoverable: readonly UnrecoverableRange[];
}

export interface Loss {
  readonly dead: readonly number[];
  /** The answers of all remaining nodes. */
  readonly seen: readonly NodeGroups[];
  /** The ranges that the masters know; none if the masters cannot be asked. */
  readonly known: readonly RangeDescriptor[];
}

interface Replica extends HeldGroup {
  readonly nodeId: number;
}

const FIRST: Epoch = { confVersion: 1, version: 1 };

export function planRecovery(loss: Loss): RecoveryPlan {
  const { dead, seen, known } = loss;
  const replicas = seen.flatMap(({ nodeId, groups }) => groups.map((group) => ({ ...group, nodeId })));
  const masters = lostGroup(replicas.filter(isOfMasters), dead, FIRST);
  const ofRanges = replicas.filter((replica) => !isOfMasters(replica));
  const told = [...known, ...ofRanges.flatMap(({ range }) => range ?? [])];
  const ranges: LostGroup[] = [];
  const unrecoverable: UnrecoverableRange[] = [];
  for (const latest of latestOf(told)) {
    const found = ofRange(latest, ofRanges, loss, told);
    if (found === undefined) continue;
    if ('reason' in found) unrecoverable.push(found);
    else ranges.push(found);
  }
  return { masters, ranges, unrecoverable };
}

function isOfMasters({ groupId }: HeldGroup): boolean {
  return groupId === MASTERS;
}

/** Returns the recovery of a range, if it needs one. */
function ofRange(
  latest: RangeDescriptor,
  all: readonly Replica[],
  { dead, known }: Loss,
  told: readonly RangeDescriptor[],
): LostGroup | UnrecoverableRange | undefined {
  const { rangeId } = latest;
  const replicas = all.filter(({ groupId }) => groupId === rangeId);
  const members = replicas.filter(({ replicaId }) => latest.replicas.some((each) => each.replicaId === replicaId));
  if (members.length === 0 && latest.replicas.every(({ nodeId }) => dead.includes(nodeId))) {
    return { range: latest, reason: 'no replica of it is left' };
  }
  const lost = lostGroup(members, dead, latestEpoch(told, rangeId));
  if (lost?.range === undefined) return undefined;
  const owner = laterOwner(lost.range, told);
  const givenUp = replicas.map(({ nodeId }) => nodeId).filter((nodeId) => nodeId !== lost.survivor);
  if (owner === undefined) return { ...lost, givenUp };
  if (known.length > 0 && !known.some((range) => range.rangeId === rangeId)) return undefined; // the range was merged away
  const reason = `its newest replica is older than a split or a merge: range ${owner} has some of its keys`;
  return { range: lost.range, reason };
}

/** Returns the descriptor with the latest membership of each range. */
function latestOf(told: readonly RangeDescriptor[]): readonly RangeDescriptor[] {
  const latest = new Map<number, RangeDescriptor>();
  for (const range of told) {
    const before = latest.get(range.rangeId);
    if (before === undefined || before.epoch.confVersion < range.epoch.confVersion) latest.set(range.rangeId, range);
  }
  return [...latest.values()];
}

/** RP1, RP2. */
function lostGroup(replicas: readonly Replica[], dead: readonly number[], epoch: Epoch): LostGroup | undefined {
  const usable = replicas.filter(({ voters }) => voters.length > 0);
  const [first, ...others] = usable;
  if (first === undefined || replicas.some(({ led }) => led)) return undefined;
  const best = others.reduce((a, b) => (isBetter(b, a) ? b : a), first);
  const { groupId, range, replicaId, lastTerm, lastIndex, voters, votersOutgoing } = best;
  if (isMajority(voters, dead) && (votersOutgoing.length === 0 || isMajority(votersOutgoing, dead))) return undefined;
  return {
    ...{ groupId, range, replicaId, lastTerm, lastIndex, epoch },
    voters: [...new Set([...voters, ...votersOutgoing])],
    survivor: best.nodeId,
    givenUp: replicas.filter((each) => each !== best).map(({ nodeId }) => nodeId),
  };
}

function isBetter(a: Replica, b: Replica): boolean {
  if (a.lastTerm !== b.lastTerm) return a.lastTerm > b.lastTerm;
  if (a.lastIndex !== b.lastIndex) return a.lastIndex > b.lastIndex;
  return a.replicaId < b.replicaId; // RP1: whatever the order of the answers
}

/** Whether more than half of the voters remain. */
function isMajority(voters: readonly number[], dead: readonly number[]): boolean {
  return 2 * voters.filter((nodeId) => !dead.includes(nodeId)).length > voters.length;
}

function latestEpoch(told: readonly RangeDescriptor[], rangeId: number): Epoch {
  const epochs = told.filter((range) => range.rangeId === rangeId).map(({ epoch }) => epoch);
  return {
    confVersion: Math.max(1, ...epochs.map(({ confVersion }) => confVersion)),
    version: Math.max(1, ...epochs.map(({ version }) => version)),
  };
}

/** RP3. Finds a later version of a range that has keys of this one, or has given some of its keys to others. */
function laterOwner(range: RangeDescriptor, told: readonly RangeDescriptor[]): number | undefined {
  return told.find(
    (other) =>
      other.epoch.version > range.epoch.version &&
      (other.rangeId === range.rangeId || sharesKeys(other, range)) &&
      !isSameSpan(other, range),
  )?.rangeId;
}

function isSameSpan(a: RangeDescriptor, b: RangeDescriptor): boolean {
  return a.rangeId === b.rangeId && equalBytes(a.start, b.start) && equalBytes(a.end, b.end);
}

function sharesKeys(a: Span, b: Span): boolean {
  return spanContains(a, b.start) || spanContains(b, a.start);
}
