/**
 * Who goes on where a majority is lost, from what all nodes say that are left.
 *
 * RP1. Of a group, the replica with the best log counts: the later last term, then the higher last index. It holds whatever
 *      any of the others has applied (raft/core/forced.test.ts). Exactly that one goes on; of equal ones that of the lowest
 *      id, so that orders which are given at once through several gateways choose the same.
 * RP2. A group has lost its majority when its best replica hears no leader, and of the voters that it knows, in one of both
 *      sets if the configuration is joint, no more than half live on nodes that are left.
 * RP3. No replica goes on with keys that another range has by a later version, living or dead: it has not come to a split or
 *      a merge that others have.
 */
import { equalBytes, type Span, spanContains } from '@remora/base';
import { type Epoch, type HeldGroup, MASTERS, type NodeGroups, type RangeDescriptor } from '@remora/protocol';

/** A group that has lost its majority. */
export interface LostGroup {
  readonly groupId: number;
  /** Undefined for the masters. */
  readonly range: RangeDescriptor | undefined;
  /** The nodes whose replicas vote. */
  readonly voters: readonly number[];
  /** The node of the replica that goes on, and what it holds. */
  readonly survivor: number;
  readonly replicaId: number;
  readonly lastTerm: number;
  readonly lastIndex: number;
  /** The latest epoch that anybody knows. */
  readonly epoch: Epoch;
  /** Nodes whose replicas are given up. */
  readonly givenUp: readonly number[];
}

/** A range of which nothing can be brought back. */
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
  /** What every other node says. */
  readonly seen: readonly NodeGroups[];
  /** As the masters know them; none when they cannot be asked. */
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

/** What is to be done for a range, if anything. */
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
  if (known.length > 0 && !known.some((range) => range.rangeId === rangeId)) return undefined; // it was merged away
  const reason = `its newest replica is older than a split or a merge: range ${owner} has some of its keys`;
  return { range: lost.range, reason };
}

/** Of each range the descriptor of its latest membership. */
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
  return a.replicaId < b.replicaId; // RP1: in whatever order they were asked
}

/** Whether more than half of the voters are left. */
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

/** RP3: another range, or the same one, that has keys of this one by a later version, or has left some to others. */
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
