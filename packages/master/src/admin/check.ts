/**
 * The problems of a cluster, as a pure function of what the masters' leader knows.
 *
 * CK1. A new leader reports nothing about nodes from which it has not heard yet, nor anything that only they can
 *      report. For as long as a node may be silent, it only reports that it has not heard from them (`notInformed`).
 * CK2. A range has a leader only if the node that reports to lead it is still heard. A range that has just begun, or
 *      whose leader has just failed, elects one in about a second, so only a longer lack is a problem.
 * CK3. Problems that a node reports about itself are passed on unchanged while the node is heard.
 * CK4. A follower that restarts or receives a snapshot is behind for a while, so only a longer lag is a problem.
 */
import { type Bytes, formatDurationMs } from '@remora/base';
import {
  type HealthCondition,
  healthCondition,
  type NodeOverview,
  type RangeDescriptor,
  type RangeOverview,
  type RangeReport,
  type ReplicaDescriptor,
  routingKeyText,
  worstFirst,
} from '@remora/protocol';
import { wasRemoved } from '../ranges/replica-tasks.ts';
import { coverageFaults } from '../scheduling/cluster-check.ts';
import { leaderReport } from './overview.ts';

export interface CheckInput {
  readonly nodes: readonly NodeOverview[];
  /** In the order of their keys. */
  readonly ranges: readonly RangeOverview[];
  /** The wanted number of voters of a range. */
  readonly replicas: number;
  /** The number of nodes that the first range needs. */
  readonly firstReplicas: number;
  /** This leader has not heard from the node, and has not waited long enough for it (CK1). */
  readonly unheard: (nodeId: number) => boolean;
  /** For how long no node that is up has reported to lead the range (CK2). */
  readonly leaderlessMs: (rangeId: number) => number;
  /** For how long a follower that answers has been behind its leader (CK4). */
  readonly behindMs: (replicaId: number) => number;
  /** Problems that nodes report about themselves. */
  readonly reported: readonly HealthCondition[];
  readonly held: readonly HeldReplica[];
  /** The range into which a range was merged; undefined if it was not, or if that is not known yet. */
  readonly mergedInto: (rangeId: number) => number | undefined;
  readonly isRestoring: boolean;
  /** Problems that the scheduling found. */
  readonly more: readonly HealthCondition[];
}

/** An election takes about a second, and its winner reports once a second (CK2). */
const LEADERLESS_MS = 3_000;

/** CK4. A range of the largest size is copied in less time at the slowest rate for snapshots. */
const BEHIND_MS = 60_000;

/** A replica that a node reports. */
interface HeldReplica {
  readonly nodeId: number;
  readonly report: RangeReport;
}

/** The worst first. */
export function findConditions(input: CheckInput): readonly HealthCondition[] {
  return worstFirst([
    ...noRanges(input),
    ...restore(input),
    ...coverage(input.ranges.map(({ descriptor }) => descriptor)),
    ...ranges(input),
    ...nodes(input),
    ...orphans(input),
    ...input.more,
  ]);
}

/** Before the first range exists, nothing can be stored. */
function* noRanges({ ranges, nodes, firstReplicas }: CheckInput): Generator<HealthCondition> {
  if (ranges.length > 0) return;
  const able = nodes.filter(
    ({ descriptor, state, duty }) => descriptor.roles.includes('data') && state === 'up' && duty === 'serving',
  );
  const names = able.length === 0 ? '' : ` (${able.map(({ descriptor }) => descriptor.name).join(', ')})`;
  const have = `${able.length} of ${firstReplicas} nodes that store data ${able.length === 1 ? 'is' : 'are'} up${names}`;
  yield healthCondition('noRanges', {}, `the cluster has no range yet: ${have}`);
}

function* restore({ isRestoring }: CheckInput): Generator<HealthCondition> {
  if (isRestoring) yield healthCondition('restoreUnderWay', {}, 'a restore has begun and has not finished');
}

/** Every key belongs to one range, once there are any. */
function coverage(descriptors: readonly RangeDescriptor[]): readonly HealthCondition[] {
  return coverageFaults(descriptors).map(({ type, start, end, rangeIds }) => {
    const keys = `the keys from ${keyText(start, 'the first')} to ${keyText(end, 'the last')}`;
    const about = { rangeId: rangeIds.at(-1) ?? 0 };
    return type === 'hole'
      ? healthCondition('hole', about, `no range contains ${keys}, next to range ${rangeIds.join(' and ')}`)
      : healthCondition('overlap', about, `ranges ${rangeIds.join(' and ')} both contain ${keys}`);
  });
}

function keyText(key: Bytes, none: string): string {
  return key.length === 0 ? none : routingKeyText(key);
}

function* ranges({ ranges, nodes, replicas, unheard, leaderlessMs, behindMs }: CheckInput): Generator<HealthCondition> {
  const byId = new Map(nodes.map((node) => [node.descriptor.nodeId, node]));
  for (const range of ranges) {
    const { rangeId } = range.descriptor;
    const voters = range.descriptor.replicas.filter(({ type }) => type === 'voter');
    const present = voters.filter((voter) => unheard(voter.nodeId) || isPresent(voter, range, byId)); // CK1
    const isUnheard = voters.some(({ nodeId }) => unheard(nodeId));
    const named = (list: readonly ReplicaDescriptor[]) => list.map(({ nodeId }) => nodeName(byId, nodeId)).join(', ');
    if (present.length <= voters.length / 2) {
      const text = `range ${rangeId}: only ${present.length} of its ${voters.length} voters are up; its keys are unavailable`;
      yield healthCondition('quorumLost', { rangeId }, text);
    } else if (!isUnheard && leaderlessMs(rangeId) >= LEADERLESS_MS) {
      yield healthCondition('noLeader', { rangeId }, `range ${rangeId} has no leader; its keys are unavailable`);
    }
    if (voters.length < replicas) {
      const text = `range ${rangeId} has ${voters.length} voters, not ${replicas}: on ${named(voters)}`;
      yield healthCondition('underReplicated', { rangeId }, text);
    }
    for (const voter of voters) {
      if (present.includes(voter)) continue;
      const text = `range ${rangeId}: its replica ${voter.replicaId} on ${nodeName(byId, voter.nodeId)} does not respond`;
      yield healthCondition('silentReplica', { rangeId, nodeId: voter.nodeId }, text);
    }
    for (const { replicaId, nodeId, lag } of replicasBehind(range)) {
      if (behindMs(replicaId) < BEHIND_MS) continue;
      const text = `range ${rangeId}: its replica ${replicaId} on ${nodeName(byId, nodeId)} is ${lag} entries behind its leader`;
      yield healthCondition('replicaBehind', { rangeId, nodeId }, text);
    }
    const sizeRemark = leaderReport(range)?.sizeRemark ?? '';
    if (sizeRemark !== '') yield healthCondition('rangeTooLarge', { rangeId }, `range ${rangeId}: ${sizeRemark}`);
    if (leaderReport(range)?.joint === true) {
      const text = `range ${rangeId} is in a joint configuration: a membership change is running or was left unfinished`;
      yield healthCondition('joint', { rangeId }, text);
    }
    for (const { replicaId, nodeId, type } of range.descriptor.replicas) {
      if (type !== 'learner') continue;
      const text = `range ${rangeId}: its replica ${replicaId} on ${nodeName(byId, nodeId)} is a learner: it is joining or was left behind`;
      yield healthCondition('learner', { rangeId, nodeId }, text);
    }
  }
}

/** Voters that answer their leader and lack more entries than a follower does that keeps up. */
export function replicasBehind(
  range: RangeOverview,
): readonly { readonly replicaId: number; readonly nodeId: number; readonly lag: number }[] {
  return (leaderReport(range)?.peers ?? []).flatMap(({ replicaId, caughtUp, silentMs, lagEntries: lag }) => {
    if (caughtUp || silentMs > 0) return [];
    const voter = range.descriptor.replicas.find((replica) => replica.replicaId === replicaId);
    return voter?.type === 'voter' ? [{ replicaId, nodeId: voter.nodeId, lag }] : [];
  });
}

/** Its node reports, and reports this replica. */
function isPresent(voter: ReplicaDescriptor, range: RangeOverview, nodes: ReadonlyMap<number, NodeOverview>): boolean {
  const reported = range.reports.some(({ report }) => report.replicaId === voter.replicaId);
  const state = nodes.get(voter.nodeId)?.state;
  return reported && state === 'up';
}

function* nodes({ nodes, unheard, reported }: CheckInput): Generator<HealthCondition> {
  const missing: string[] = [];
  for (const { descriptor, state, duty, silentMs } of nodes) {
    const { nodeId, name } = descriptor;
    if (duty === 'removed') continue;
    if (duty !== 'serving') {
      const text = `node ${nodeId} (${name}) ${DUTY_TEXTS[duty]}`;
      yield healthCondition('draining', { nodeId }, text);
    }
    if (unheard(nodeId)) missing.push(`${nodeId} (${name})`);
    else if (state === 'up')
      yield* reported.filter((condition) => condition.nodeId === nodeId); // CK3
    else {
      const since =
        silentMs < 0
          ? 'since this master was elected'
          : `for ${formatDurationMs(Math.round(silentMs / 1_000) * 1_000)}`;
      const text = `node ${nodeId} (${name}) is ${state}: it has not reported ${since}`;
      yield healthCondition('silentNode', { nodeId }, text);
    }
  }
  if (missing.length === 0) return;
  const text = `the masters' leader is new, and has not heard from node ${missing.join(', ')} yet`;
  yield healthCondition('notInformed', {}, text); // CK1
}

const DUTY_TEXTS = {
  draining: 'is draining: it transfers its leaders to other nodes and accepts no new leaders or replicas',
  maintenance: 'is in maintenance: it leads no ranges, and its replicas are not replaced while it is down',
  decommissioning: 'is being decommissioned: its replicas move to other nodes',
} as const;

/** Replicas that are no longer needed and have asked: their nodes were notified, and still have them. */
function* orphans({ held, ranges, nodes, mergedInto }: CheckInput): Generator<HealthCondition> {
  const byId = new Map(nodes.map((node) => [node.descriptor.nodeId, node]));
  const descriptors = new Map(ranges.map(({ descriptor }) => [descriptor.rangeId, descriptor]));
  for (const { nodeId, report } of held) {
    const { rangeId, replicaId } = report;
    const range = descriptors.get(rangeId);
    const into = mergedInto(rangeId);
    if (byId.get(nodeId)?.duty === 'removed') continue;
    if (!report.silent) continue; // The replica is about to be deleted, or will learn of it soon.
    if (into === undefined && (range === undefined || !wasRemoved(range, report))) continue;
    const since = into === undefined ? 'the range continues without it' : `that range was merged into range ${into}`;
    const text = `${nodeName(byId, nodeId)} still holds replica ${replicaId} of range ${rangeId}: ${since}`;
    yield healthCondition('orphan', { rangeId, nodeId }, text);
  }
}

function nodeName(nodes: ReadonlyMap<number, NodeOverview>, nodeId: number): string {
  const name = nodes.get(nodeId)?.descriptor.name;
  return name === undefined ? `node ${nodeId}` : `node ${nodeId} (${name})`;
}
