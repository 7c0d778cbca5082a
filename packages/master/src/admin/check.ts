/** What is wrong with a cluster: a pure function of what the master knows. */
import { type Bytes, formatDurationMs } from '@remora/base';
import {
  type ClusterProblem,
  type NodeOverview,
  type RangeDescriptor,
  type RangeOverview,
  type RangeReport,
  type ReplicaDescriptor,
  routingKeyText,
} from '@remora/protocol';
import { wasRemoved } from '../replica-tasks.ts';
import { coverageFaults } from '../scheduling/cluster-check.ts';
import { leaderReport } from './overview.ts';

export interface CheckInput {
  readonly nodes: readonly NodeOverview[];
  /** In the order of their keys. */
  readonly ranges: readonly RangeOverview[];
  /** Voters that a range should have. */
  readonly replicas: number;
  readonly held: readonly HeldReplica[];
  /** The range into which one was merged; undefined when it was not, or is not known yet. */
  readonly mergedInto: (rangeId: number) => number | undefined;
  /** What the scheduling finds. */
  readonly more: readonly ClusterProblem[];
}

/** A replica that a node says it has. */
export interface HeldReplica {
  readonly nodeId: number;
  readonly report: RangeReport;
}

/** The worst first. */
export function findProblems(input: CheckInput): readonly ClusterProblem[] {
  const problems = [
    ...coverage(input.ranges.map(({ descriptor }) => descriptor)),
    ...ranges(input),
    ...nodes(input),
    ...orphans(input),
    ...input.more,
  ];
  const critical = problems.filter(({ severity }) => severity === 'critical');
  return [...critical, ...problems.filter(({ severity }) => severity !== 'critical')];
}

/** Every key belongs to one range, once there is any. */
function coverage(descriptors: readonly RangeDescriptor[]): readonly ClusterProblem[] {
  return coverageFaults(descriptors).map(({ type, start, end, rangeIds }) => {
    const keys = `the keys from ${keyText(start, 'the first')} to ${keyText(end, 'the last')}`;
    const about = { rangeId: rangeIds.at(-1) ?? 0 };
    return type === 'hole'
      ? problem('hole', 'critical', about, `no range has ${keys}, beside range ${rangeIds.join(' and ')}`)
      : problem('overlap', 'critical', about, `ranges ${rangeIds.join(' and ')} both have ${keys}`);
  });
}

function keyText(key: Bytes, none: string): string {
  return key.length === 0 ? none : routingKeyText(key);
}

function* ranges({ ranges, nodes, replicas }: CheckInput): Generator<ClusterProblem> {
  const byId = new Map(nodes.map((node) => [node.descriptor.nodeId, node]));
  for (const range of ranges) {
    const { rangeId } = range.descriptor;
    const voters = range.descriptor.replicas.filter(({ type }) => type === 'voter');
    const present = voters.filter((voter) => isPresent(voter, range, byId));
    const named = (list: readonly ReplicaDescriptor[]) => list.map(({ nodeId }) => nodeName(byId, nodeId)).join(', ');
    if (present.length <= voters.length / 2) {
      const text = `range ${rangeId}: only ${present.length} of its ${voters.length} voters are there; its keys cannot be used`;
      yield problem('quorumLost', 'critical', { rangeId }, text);
    } else if (range.leaderNode === 0) {
      yield problem('noLeader', 'critical', { rangeId }, `range ${rangeId} has no leader; its keys cannot be used`);
    }
    if (voters.length < replicas) {
      const text = `range ${rangeId} has ${voters.length} voters, not ${replicas}: on ${named(voters)}`;
      yield problem('underReplicated', 'warning', { rangeId }, text);
    }
    for (const voter of voters) {
      if (present.includes(voter)) continue;
      const text = `range ${rangeId}: nothing is heard of its replica ${voter.replicaId} on ${nodeName(byId, voter.nodeId)}`;
      yield problem('silentReplica', 'warning', { rangeId, nodeId: voter.nodeId }, text);
    }
    if (leaderReport(range)?.joint === true) {
      const text = `range ${rangeId} is between two memberships: a change is under way, or was left so`;
      yield problem('joint', 'warning', { rangeId }, text);
    }
    for (const { replicaId, nodeId, type } of range.descriptor.replicas) {
      if (type !== 'learner') continue;
      const text = `range ${rangeId}: its replica ${replicaId} on ${nodeName(byId, nodeId)} is a learner: it joins, or was left so`;
      yield problem('learner', 'warning', { rangeId, nodeId }, text);
    }
  }
}

/** Its node reports, and this replica among others. */
function isPresent(voter: ReplicaDescriptor, range: RangeOverview, nodes: ReadonlyMap<number, NodeOverview>): boolean {
  const reported = range.reports.some(({ report }) => report.replicaId === voter.replicaId);
  const state = nodes.get(voter.nodeId)?.state;
  return reported && state === 'up';
}

function* nodes({ nodes }: CheckInput): Generator<ClusterProblem> {
  for (const { descriptor, state, duty, silentMs } of nodes) {
    if (state === 'up' || duty === 'removed') continue;
    const since =
      silentMs < 0 ? 'since this master leads' : `for ${formatDurationMs(Math.round(silentMs / 1_000) * 1_000)}`;
    const text = `node ${descriptor.nodeId} (${descriptor.name}) is ${state}: nothing was heard of it ${since}`;
    yield problem('silentNode', 'warning', { nodeId: descriptor.nodeId }, text);
  }
}

/** Replicas that nobody needs any more, and that have asked whether they are: they are told so, and are still there. */
function* orphans({ held, ranges, nodes, mergedInto }: CheckInput): Generator<ClusterProblem> {
  const byId = new Map(nodes.map((node) => [node.descriptor.nodeId, node]));
  const descriptors = new Map(ranges.map(({ descriptor }) => [descriptor.rangeId, descriptor]));
  for (const { nodeId, report } of held) {
    const { rangeId, replicaId } = report;
    const range = descriptors.get(rangeId);
    const into = mergedInto(rangeId);
    if (byId.get(nodeId)?.duty === 'removed') continue;
    if (!report.silent) continue; // It is about to be cleared away, or finds out soon.
    if (into === undefined && (range === undefined || !wasRemoved(range, report))) continue;
    const since = into === undefined ? 'the range goes on without it' : `that was merged into range ${into}`;
    const text = `${nodeName(byId, nodeId)} still holds replica ${replicaId} of range ${rangeId}: ${since}`;
    yield problem('orphan', 'warning', { rangeId, nodeId }, text);
  }
}

function nodeName(nodes: ReadonlyMap<number, NodeOverview>, nodeId: number): string {
  const name = nodes.get(nodeId)?.descriptor.name;
  return name === undefined ? `node ${nodeId}` : `node ${nodeId} (${name})`;
}

function problem(
  kind: ClusterProblem['kind'],
  severity: ClusterProblem['severity'],
  about: { readonly rangeId?: number; readonly nodeId?: number },
  text: string,
): ClusterProblem {
  return { kind, severity, rangeId: about.rangeId ?? 0, nodeId: about.nodeId ?? 0, text };
}
