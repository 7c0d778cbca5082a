import type { Logger } from '@remora/base';
import type { NodeTask } from '@remora/protocol';
import { confChange, type Group, isMember } from '@remora/raft';
import type { MasterState } from '../metadata/master-state.ts';
import type { Liveness } from '../scheduling/cluster-model.ts';
import { type MasterNode, type MastersView, missedBecause, nextMastersStep, staysBecause } from './plan.ts';

export interface MasterMembershipControllerDeps {
  readonly nodeId: number;
  readonly logger: Logger;
  readonly state: MasterState;
  readonly group: () => Group;
  readonly stateOf: (nodeId: number) => Liveness;
  /** Whether all masters know the consequences of the founders' options; starts to settle that if not. */
  readonly settled: () => boolean;
}

/** Keeps the number of masters at its target, on the masters' leader (plan.ts). */
export class MasterMembershipController {
  readonly #deps: MasterMembershipControllerDeps;
  /** What it waits for, or its last action; empty if all is well. */
  #said = '';

  constructor(deps: MasterMembershipControllerDeps) {
    this.#deps = deps;
  }

  /** Called about every second while this master leads, once it has heard from the nodes. */
  tick(): void {
    const step = nextMastersStep(this.#view());
    if (step.why !== this.#said && step.why !== '') this.#deps.logger.info({ why: step.why }, 'masters');
    this.#said = step.why;
    const group = this.#deps.group();
    // A step that is refused now, or lost, is computed again (MS4).
    if (step.type === 'change' && this.#deps.settled()) group.proposeConf(confChange(step.steps));
    if (step.type === 'handOver') group.transferLeader(step.to);
  }

  isMaster(nodeId: number): boolean {
    return isMember(this.#deps.state.conf, nodeId);
  }

  /** Whether a node is alive, at least as a master: it reports, or has lately acknowledged something to this one. */
  isHeard(nodeId: number): boolean {
    const { nodeId: self, stateOf, group } = this.#deps;
    if (nodeId === self || stateOf(nodeId) === 'up') return true;
    return group()
      .status()
      .progress.some(({ replica, heardLately }) => replica === nodeId && heardLately);
  }

  /** Why a leaving node would remain one of the masters; undefined if it would not, or is not a master. */
  staysBecause(nodeId: number): string | undefined {
    return staysBecause(this.#view(), nodeId);
  }

  /** Why the masters cannot spare a node now; undefined if they can, or if it is not a master. */
  missedBecause(nodeId: number): string | undefined {
    return missedBecause(this.#view(), nodeId);
  }

  /** Remarks about a node as one of the masters. */
  why(nodeId: number): readonly string[] {
    if (!this.isMaster(nodeId)) return [];
    return ['it is one of the masters', ...(this.#said === '' ? [] : [`of the masters: ${this.#said}`])];
  }

  #view(): MastersView {
    const { nodeId, state, group } = this.#deps;
    const { conf, changePending, progress } = group().status();
    const { formerMasters: former, mastersWanted: wanted } = state;
    return { self: nodeId, conf, changePending, progress, nodes: this.#nodes(), former, wanted };
  }

  /** Nodes with the role, and members: a member that was restarted without the role does not run its replica. */
  #nodes(): readonly MasterNode[] {
    const { state, stateOf } = this.#deps;
    const masters = state.nodes().filter(({ nodeId, roles }) => roles.includes('master') || this.isMaster(nodeId));
    return masters.map(({ nodeId, roles }) => {
      const { duty } = state.dutyOf(nodeId);
      const leaving = duty === 'removed' || duty === 'decommissioning' || !roles.includes('master');
      const heard = stateOf(nodeId);
      const liveness = heard === 'down' && duty === 'maintenance' ? 'suspect' : heard; // MS6
      return { nodeId, liveness, serving: duty === 'serving', leaving, away: duty === 'maintenance' };
    });
  }
}

/**
 * A node's task for its replica of the masters' group. The node begins one if it is a member, and ends one if it has
 * left the group, to which it never returns: so "you have left" is true, however old the knowledge is.
 */
export function masterTask(
  state: MasterState,
  { nodeId, hasMaster }: { readonly nodeId: number; readonly hasMaster: boolean },
): NodeTask | undefined {
  const { conf, formerMasters } = state;
  if (hasMaster && formerMasters.includes(nodeId)) return { type: 'ceaseMaster' };
  const isMember = [...conf.voters, ...conf.learners].includes(nodeId);
  return isMember && !hasMaster ? { type: 'becomeMaster' } : undefined;
}
