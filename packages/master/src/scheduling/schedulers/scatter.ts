/**
 * Spreads the replicas and leaders of a group of ranges over the nodes, by the counts within the group, because such
 * ranges are often used together. A scatter is requested once per group and ends; the other schedulers keep the overall
 * balance.
 */
import { type RangeInfo, voterNodes } from '../cluster-model.ts';
import { costOfJoining } from '../labels.ts';
import type { Plan } from '../operator.ts';
import { Counter } from '../operator-influence.ts';
import { unfitFor } from '../placement.ts';
import { planFor, relocateSteps } from '../plans.ts';
import { notServing } from '../step.ts';
import type { SchedulingView } from '../view.ts';
import { type Proposals, REFUSALS_MAX, type Scheduler } from './scheduler.ts';

interface Group {
  readonly rangeIds: readonly number[];
  readonly waiting: Set<number>;
  readonly untilMs: number;
  /** How many of the group's ranges have found their place there. */
  readonly replicas: Counter<number>;
  readonly leaders: Counter<number>;
}

interface Target {
  readonly voters: readonly number[];
  readonly leader: number;
}

/** Ranges that could not be moved by then stay where they are. */
const GIVE_UP_AFTER_MS = 600_000;

export class Scatter implements Scheduler {
  readonly name = 'scatter';
  readonly desc = 'spreads groups of ranges on request';
  readonly settings = [];
  #groups: readonly Group[] = [];

  /** Unknown ranges are skipped. A repeated request for a group that is still being spread changes nothing. */
  request(rangeIds: readonly number[], nowMs: number): void {
    if (this.#groups.some((group) => group.waiting.size > 0 && isSame(group.rangeIds, rangeIds))) return;
    const group: Group = {
      rangeIds,
      waiting: new Set(rangeIds),
      untilMs: nowMs + GIVE_UP_AFTER_MS,
      replicas: new Counter(),
      leaders: new Counter(),
    };
    this.#groups = [...this.#groups, group];
  }

  /** Whether a group is not spread yet. */
  get waiting(): boolean {
    return this.#groups.some(({ waiting }) => waiting.size > 0);
  }

  *propose(view: SchedulingView): Proposals {
    this.#groups = this.#groups.filter(({ waiting, untilMs }) => waiting.size > 0 && view.nowMs < untilMs);
    let refusals = 0;
    for (const group of this.#groups) {
      for (const rangeId of group.waiting) {
        const range = view.model.range(rangeId);
        const target = range === undefined ? undefined : targetFor(view, range, group);
        if (range === undefined || target === undefined) {
          group.waiting.delete(rangeId);
          continue;
        }
        if (view.notChangeable(range) !== undefined) continue;
        const plan = planTo(view, range, target);
        if (plan === undefined || (yield [plan])) settle(group, rangeId, target);
        else if (++refusals === REFUSALS_MAX) break;
      }
    }
    const left = this.#groups.reduce((sum, { waiting }) => sum + waiting.size, 0);
    return left === 0 ? 'no scatter is requested' : `${left} ranges remain to be scattered`;
  }
}

function isSame(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((rangeId, i) => rangeId === b[i]);
}

function settle(group: Group, rangeId: number, { voters, leader }: Target): void {
  group.waiting.delete(rangeId);
  for (const nodeId of voters) group.replicas.add(nodeId, 1);
  group.leaders.add(leader, 1);
}

/**
 * As many nodes as the range has voters: well isolated first, then with few ranges of the group, then with few ranges.
 */
function targetFor(view: SchedulingView, range: RangeInfo, group: Group): Target | undefined {
  const candidates = [...view.model.nodes()]
    .map(({ info }) => info.nodeId)
    .filter((nodeId) => mayStay(view, range, nodeId) || unfitFor(view, range, nodeId, 'scatter') === undefined);
  const wanted = voterNodes(range).length;
  const voters: number[] = [];
  while (voters.length < wanted) {
    const [next] = candidates
      .filter((nodeId) => !voters.includes(nodeId))
      .map((nodeId) => ({
        nodeId,
        cost: costOfJoining(view.model, nodeId, voters, view.settings.isolationLevels),
        inGroup: group.replicas.of(nodeId),
        inAll: view.expected(nodeId).replicas,
      }))
      .sort((a, b) => a.cost - b.cost || a.inGroup - b.inGroup || a.inAll - b.inAll || a.nodeId - b.nodeId);
    if (next === undefined) return undefined;
    voters.push(next.nodeId);
  }
  const leader = voters.reduce((best, nodeId) => (leads(nodeId) < leads(best) ? nodeId : best));
  return { voters, leader };

  function leads(nodeId: number): number {
    return group.leaders.of(nodeId);
  }
}

function mayStay(view: SchedulingView, range: RangeInfo, nodeId: number): boolean {
  return voterNodes(range).includes(nodeId) && notServing(view.model, nodeId) === undefined;
}

function planTo(view: SchedulingView, range: RangeInfo, target: Target): Plan | undefined {
  const steps = relocateSteps(view, range, target);
  return steps.length === 0
    ? undefined
    : planFor(range, { kind: 'scatter', steps, reason: 'it is part of a requested scatter' });
}
