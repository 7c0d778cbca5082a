/**
 * Plans the membership of the masters: the next step from the current masters to the wanted ones.
 *
 * MS1. There are as many masters as founded the cluster. A master that is removed, decommissioned or down is replaced
 *      by another node with the role. The new node copies the state first; then one joint change lets it vote and
 *      removes the vote of the old one (as for ranges, decision 13).
 * MS2. After each step more than half of the voters are heard: no planned step costs the masters their majority.
 * MS3. The id of a replica of this group is the id of its node. A node that has left the group never returns to it,
 *      because its promises are forgotten (traps 10).
 * MS4. There is one step at a time, computed from the current state: the next leader continues an unfinished change.
 * MS5. An even number of voters survives no more failures than one voter less, so if two are missing, both join at
 *      once.
 * MS6. Planned silence replaces no master, as for ranges (scheduling/range-check.ts R2), because a replaced node could
 *      not return (MS3). Within a maintenance window a node does not count as down.
 */
import type { ConfState, ConfStep, ProgressStatus } from '@remora/raft';
import { isJoint } from '@remora/raft';
import type { Liveness } from '../scheduling/cluster-model.ts';

/** A node with the role of a master. */
export interface MasterNode {
  readonly nodeId: number;
  readonly liveness: Liveness;
  /** It accepts new replicas; otherwise it keeps its replica, unless it is leaving. */
  readonly serving: boolean;
  /** Removed, being decommissioned, or without the role by now. */
  readonly leaving: boolean;
  /** It may go down at any time, and come back: a maintenance window. */
  readonly away?: boolean;
}

export interface MastersView {
  /** The node that leads the masters. */
  readonly self: number;
  readonly conf: ConfState;
  /** A change is in the log and not applied. */
  readonly changePending: boolean;
  readonly progress: readonly ProgressStatus[];
  readonly nodes: readonly MasterNode[];
  /** Nodes that were masters, and are not any more (MS3). */
  readonly former: readonly number[];
  /** The wanted number of masters. */
  readonly wanted: number;
}

export type MastersStep =
  | { readonly type: 'change'; readonly steps: readonly ConfStep[]; readonly why: string }
  | { readonly type: 'handOver'; readonly to: number; readonly why: string }
  /** Nothing has to be done, or the reason for waiting. */
  | { readonly type: 'none'; readonly why: string };

const WELL: MastersStep = { type: 'none', why: '' };

export function nextMastersStep(view: MastersView): MastersStep {
  const { conf, changePending } = view;
  if (changePending || isJoint(conf)) return wait('another change of the masters is in progress');
  const away = conf.learners.filter((nodeId) => goes(view, nodeId));
  if (away.length > 0) return change(removals(away), `${named(away)} leaves the masters`);
  const leaving = conf.voters.filter((nodeId) => goes(view, nodeId));
  const missing = view.wanted - (conf.voters.length - leaving.length);
  if (missing <= 0) return leaving.length > 0 ? demotion(view, leaving) : dropSpares(view);
  return replacement(view, leaving, missing);
}

/** Why a leaving node would remain one of the masters; undefined if it would not, or is not a master. */
export function staysBecause(view: MastersView, nodeId: number): string | undefined {
  const { conf } = view;
  if (!conf.voters.includes(nodeId)) return undefined;
  const nodes = view.nodes.map((node) => (node.nodeId === nodeId ? { ...node, leaving: true } : node));
  const leaving = conf.voters.filter((each) => goes({ ...view, nodes }, each));
  const copying = conf.learners.filter((each) => !goes({ ...view, nodes }, each));
  const staying = conf.voters.length - leaving.length;
  const joining = usefulNumber(view, leaving, copying.length + candidatesOf({ ...view, nodes }).length);
  // Others may be leaving already: one successor is not enough for two.
  const left = joining > 0 ? fewest(view) : enough(view);
  if (staying + joining >= left) return undefined;
  return `it is one of the ${conf.voters.length} masters, and no other node can take its place: add one with the role master`;
}

/**
 * Why the masters cannot spare a node for a while, because other masters are away or may be; undefined if they can, or
 * if it is not a master. With one or two masters each is always needed, and waiting does not change that.
 */
export function missedBecause(view: MastersView, nodeId: number): string | undefined {
  const { voters } = view.conf;
  const isAway = (each: number): boolean =>
    !isHeard(view, each) || view.nodes.some((node) => node.nodeId === each && node.away === true);
  const away = voters.filter((each) => each !== nodeId && isAway(each));
  if (!voters.includes(nodeId) || away.length === 0) return undefined;
  if (2 * (voters.length - 1 - away.length) > voters.length) return undefined;
  const how = `${named(away)} ${away.length === 1 ? 'is' : 'are'} silent or in maintenance as well`;
  return `the masters would lose their majority while node ${nodeId} is down: ${how}`;
}

function candidatesOf(view: MastersView): readonly number[] {
  return view.nodes.filter((node) => isCandidate(view, node)).map(({ nodeId }) => nodeId);
}

/** Copies first, then the change of voters (MS1). */
function replacement(view: MastersView, leaving: readonly number[], missing: number): MastersStep {
  const { conf } = view;
  const candidates = candidatesOf(view);
  const within = usefulNumber(view, leaving, Math.min(missing, conf.learners.length + candidates.length));
  if (within === 0) return leaving.length > 0 ? demotion(view, leaving) : WELL;
  const lives = leaving.find((nodeId) => isHeard(view, nodeId));
  if (lives !== undefined && conf.voters.length - leaving.length + within < fewest(view)) {
    const others = leaving.filter((nodeId) => nodeId !== lives);
    return replacement(view, others, missing - 1); // Living masters tolerate a loss until another node joins.
  }
  const [next] = candidates;
  if (conf.learners.length < within && next !== undefined) {
    return change([{ type: 'addLearner', replica: next }], `node ${next} becomes a master`);
  }
  const joining = conf.learners.slice(0, within);
  const behind = joining.find((nodeId) => !isCaughtUp(view, nodeId));
  if (behind !== undefined) return wait(`node ${behind} is still copying the masters' state`);
  const promoted = joining.map((replica): ConfStep => ({ type: 'addVoter', replica }));
  return swap(view, leaving, promoted, `${named(joining)} votes with the masters`);
}

/**
 * How many of the candidates should join (MS5): not to an even number of voters, unless that is the previous number.
 */
function usefulNumber({ conf }: MastersView, leaving: readonly number[], most: number): number {
  const staying = conf.voters.length - leaving.length;
  for (let joining = most; joining > 0; joining--) {
    const voters = staying + joining;
    if (voters % 2 === 1 || voters <= conf.voters.length) return joining;
  }
  return 0;
}

/** Demotes without a replacement: only while the remaining masters tolerate the loss of one. */
function demotion(view: MastersView, leaving: readonly number[]): MastersStep {
  if (view.conf.voters.length - leaving.length < enough(view)) {
    return wait(`no other node can take the place of ${named(leaving)} among the masters`);
  }
  return swap(view, leaving, [], `${named(leaving)} leaves the masters without a replacement`);
}

/** The number of masters that tolerates the loss of one, if there were ever that many. */
function enough({ wanted }: MastersView): number {
  return Math.min(3, wanted);
}

/** The number of masters that a replacement must leave: enough, unless there were fewer before. */
function fewest(view: MastersView): number {
  return Math.min(enough(view), view.conf.voters.length);
}

function swap(view: MastersView, leaving: readonly number[], joining: readonly ConfStep[], why: string): MastersStep {
  const steps = [...joining, ...leaving.map((replica): ConfStep => ({ type: 'addLearner', replica }))];
  const stay = view.conf.voters.filter((nodeId) => !leaving.includes(nodeId));
  const voters = [...stay, ...joining.map(({ replica }) => replica)];
  const heard = voters.filter((nodeId) => isHeard(view, nodeId));
  if (2 * heard.length <= voters.length) return wait(`too few masters respond for: ${why}`); // MS2
  if (!leaving.includes(view.self)) return change(steps, why);
  // A leader that is the only voter first lets others vote.
  if (stay.length === 0 && joining.length > 0) return change(joining, why);
  const to = stay.find((nodeId) => isCaughtUp(view, nodeId));
  return to === undefined
    ? wait('no other master can lead')
    : { type: 'handOver', to, why: `node ${view.self} is leaving` };
}

/**
 * Drops learners that are no longer needed because the node to be replaced has come back; another learner that has
 * caught up does no harm.
 */
function dropSpares({ conf }: MastersView): MastersStep {
  return conf.learners.length === 0
    ? WELL
    : change(removals(conf.learners), 'the masters have their full number of voters');
}

function removals(nodeIds: readonly number[]): readonly ConfStep[] {
  return nodeIds.map((replica) => ({ type: 'remove', replica }));
}

/** MS1, MS3. */
function isCandidate({ conf, former }: MastersView, { nodeId, liveness, serving, leaving }: MasterNode): boolean {
  const isMember = conf.voters.includes(nodeId) || conf.learners.includes(nodeId);
  return liveness === 'up' && serving && !leaving && !isMember && !former.includes(nodeId);
}

/** Whether a member must leave: it is leaving the cluster, or has been silent for so long that it counts as dead. */
function goes({ nodes, self }: MastersView, nodeId: number): boolean {
  const node = nodes.find((each) => each.nodeId === nodeId);
  if (node === undefined) return false; // it has not joined yet
  return node.leaving || (node.liveness === 'down' && nodeId !== self);
}

function isHeard({ self, progress }: MastersView, nodeId: number): boolean {
  return nodeId === self || progress.some(({ replica, heardLately }) => replica === nodeId && heardLately);
}

function isCaughtUp({ progress }: MastersView, nodeId: number): boolean {
  return progress.some(({ replica, caughtUp }) => replica === nodeId && caughtUp);
}

function named(nodeIds: readonly number[]): string {
  return nodeIds.map((nodeId) => `node ${nodeId}`).join(' and ');
}

function change(steps: readonly ConfStep[], why: string): MastersStep {
  return { type: 'change', steps, why };
}

function wait(why: string): MastersStep {
  return { type: 'none', why };
}
