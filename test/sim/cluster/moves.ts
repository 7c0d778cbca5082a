/**
 * Replicas that the master moves from node to node, like its own decisions: a learner on the new node, which replaces
 * the old voter once it has caught up; then the old replica is removed.
 *
 * MV1. One move at a time, and meanwhile no other change of membership, nor the loss of a disk (members.ts Q1): the
 *      master's order may be in a log and not applied yet.
 */
import type { RangeDirector, ReportedRange } from '@remora/master';
import type { OrderResult, RangeInstruction } from '@remora/protocol';
import type { SimLoop } from '../common/env/loop.ts';
import type { SimNode } from './node.ts';

export interface Move {
  /** Node ids, and the id of the new replica. */
  readonly from: number;
  readonly to: number;
  readonly replicaId: number;
  /** The leader transfers its leadership to this replica instead, and nothing moves. */
  readonly transferTo?: number;
}

/** Masters change: each new one gets the director. */
const TELL_MASTERS_MS = 300;

export class Moves implements RangeDirector {
  /** Replicas that have moved, and those that came to a node that had left the range before. */
  moved = 0;
  returned = 0;
  /** Instructions that leaders refused. */
  refused = 0;
  readonly #loop: SimLoop;
  readonly #nodes: () => readonly SimNode[];
  /** Nodes that the range has left, by their ids. */
  readonly #left = new Set<number>();
  #move: Move | undefined;
  #onGone: () => void = () => {};

  constructor(deps: { readonly loop: SimLoop; readonly nodes: () => readonly SimNode[] }) {
    this.#loop = deps.loop;
    this.#nodes = deps.nodes;
  }

  /** MV1. */
  get inFlight(): boolean {
    return this.#move !== undefined;
  }

  /**
   * Begins a move; `onGone` is called when the leader of the range has removed the old replica. Returns a function that
   * gives the move up.
   */
  begin(move: Move, onGone: () => void): () => void {
    this.#move = move;
    this.#onGone = onGone;
    this.#tellMasters(move);
    return () => {
      if (this.#move === move) this.#move = undefined;
    };
  }

  #tellMasters(move: Move): void {
    if (this.#move !== move) return;
    for (const node of this.#nodes()) node.enter(({ master }) => master?.orders.directBy(this));
    this.#loop.setTimer(TELL_MASTERS_MS, () => this.#tellMasters(move));
  }

  reported({ descriptor, report }: ReportedRange): RangeInstruction | undefined {
    const move = this.#move;
    if (move === undefined) return undefined;
    if (move.transferTo !== undefined) return this.#transfer(move.transferTo, report.replicaId);
    const { from, to, replicaId } = move;
    const old = descriptor.replicas.find(({ nodeId }) => nodeId === from);
    const there = descriptor.replicas.find((replica) => replica.replicaId === replicaId);
    if (there === undefined) return { type: 'addLearner', nodeId: to, replicaId };
    if (there.type === 'voter' && old === undefined) return this.#arrived(move);
    return { type: 'changeVoters', promote: [replicaId], remove: old === undefined ? [] : [old.replicaId] };
  }

  #transfer(to: number, leader: number): RangeInstruction | undefined {
    if (leader !== to) return { type: 'transferLeader', replicaId: to };
    this.#move = undefined;
    return undefined;
  }

  #arrived({ from, to }: Move): undefined {
    this.#move = undefined;
    this.moved++;
    if (this.#left.has(to)) this.returned++;
    this.#left.add(from);
    this.#onGone();
    return undefined;
  }

  ended(_rangeId: number, _instruction: RangeInstruction, { outcome }: OrderResult): void {
    if (outcome === 'refused') this.refused++;
  }
}
