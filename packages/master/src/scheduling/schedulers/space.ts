/** Takes replicas off nodes whose disks are nearly full, the largest first, whatever the other balances say. */
import { type NodeView, type RangeInfo, voterNodes } from '../cluster-model.ts';
import { costOfJoining } from '../labels.ts';
import { place } from '../placement.ts';
import { moveSteps, planFor } from '../plans.ts';
import type { SchedulingView } from '../view.ts';
import { type Proposals, REFUSALS_MAX, type Scheduler } from './scheduler.ts';

/** The state of a node when its space became low. */
interface Low {
  readonly sinceMs: number;
  readonly availableBytes: number;
  /** The bytes of the ranges that it had. */
  readonly bytes: number;
}

/** By then the disk has freed the data of ranges that left: compaction takes an unknown time. */
const FREED_WITHIN_MS = 3_600_000;

/**
 * SC1. For `FREED_WITHIN_MS`, data of ranges that left a node counts as free although the disk does not show it yet.
 *      Otherwise a slightly overfull node would lose all its ranges before the first of them is off the disk.
 */
export class Space implements Scheduler {
  readonly name = 'space';
  readonly desc = 'moves replicas off nodes that are nearly full';
  readonly settings = ['lowSpacePercent', 'targetSpacePercent'] as const;
  #low = new Map<number, Low>();

  copy(): Space {
    const copy = new Space();
    copy.#low = new Map(this.#low);
    return copy;
  }

  *propose(view: SchedulingView): Proposals {
    this.#look(view);
    const low = view.balancedNodes().filter((node) => this.#isLow(view, node));
    if (low.length === 0) return this.#summary(view);
    let [refusals, refused] = [0, ''];
    for (const node of low) {
      for (const range of largestFirst(view, node)) {
        if (!this.#isLow(view, node)) break;
        const plan = relieve(view, range, node.info.nodeId);
        if (typeof plan === 'string') refused ||= plan;
        else if (!(yield [plan]) && ++refusals === REFUSALS_MAX) return 'more moves will follow: limits are reached';
      }
    }
    const names = low.map(({ info }) => info.nodeId).join(', ');
    return `free space is low on ${names}${refused === '' ? '' : `, and ${refused}`}`;
  }

  #look(view: SchedulingView): void {
    const { nowMs } = view;
    const low = new Map<number, Low>();
    for (const node of view.balancedNodes()) {
      const { nodeId, availableBytes } = node.info;
      if (availableBytes >= lowBytes(view, node)) continue;
      const before = this.#low.get(nodeId);
      const goesOn = before !== undefined && nowMs - before.sinceMs < FREED_WITHIN_MS;
      low.set(nodeId, goesOn ? before : { sinceMs: nowMs, availableBytes, bytes: node.totals.bytes });
    }
    this.#low = low;
  }

  /**
   * Whether a node has too little space, also after all running operators are done and their data is off its disk
   * (SC1).
   */
  #isLow(view: SchedulingView, node: NodeView): boolean {
    const { info, totals } = node;
    const { bytes } = view.expected(info.nodeId);
    const was = this.#low.get(info.nodeId) ?? { availableBytes: info.availableBytes, bytes: totals.bytes };
    const freed = Math.min(was.availableBytes, info.availableBytes) + was.bytes - bytes;
    return Math.max(freed, info.availableBytes + totals.bytes - bytes) < lowBytes(view, node);
  }

  #summary(view: SchedulingView): string {
    if (this.#low.size === 0) return `every node has at least ${view.settings.lowSpacePercent} % of its space free`;
    return `enough replicas are leaving the nearly full nodes (${[...this.#low.keys()].join(', ')}), or are not deleted there yet`;
  }
}

function lowBytes({ settings }: SchedulingView, { info }: NodeView): number {
  return (info.capacityBytes * settings.lowSpacePercent) / 100;
}

function largestFirst(view: SchedulingView, node: NodeView): readonly RangeInfo[] {
  const ranges = [...node.ranges].flatMap((rangeId) => view.model.range(rangeId) ?? []);
  return ranges.filter((range) => view.notMovable(range) === undefined).sort((a, b) => b.bytes - a.bytes);
}

function relieve(view: SchedulingView, range: RangeInfo, from: number) {
  const beside = voterNodes(range).filter((nodeId) => nodeId !== from);
  const cost = costOfJoining(view.model, from, beside, view.settings.isolationLevels);
  const placement = place(view, range, { kind: 'balanceReplicas', beside, costBelow: cost + 1 });
  if ('refused' in placement) return placement.refused;
  const steps = moveSteps(view, range, { from, to: placement.nodeId });
  return planFor(range, { kind: 'balanceReplicas', steps, reason: `free space is low on node ${from}` });
}
