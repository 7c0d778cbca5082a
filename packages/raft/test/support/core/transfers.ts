/** Snapshots on their way in the cluster of `core-cluster.ts`: offered, then installed or broken off. */
import { assert } from '@remora/base';
import { isMember } from '../../../src/core/membership/membership.ts';
import type { ConfState, ReplicaId } from '../../../src/core/types.ts';
import type { TestNode, Transfer } from './core-node.ts';

export interface TransfersOptions {
  readonly node: (id: ReplicaId) => TestNode;
  /** The node's core may have something to hand out. */
  readonly turn: (node: TestNode) => void;
  readonly isCut: (from: ReplicaId, to: ReplicaId) => boolean;
}

export class Transfers {
  readonly #cluster: TransfersOptions;
  #offered: Transfer[] = [];

  constructor(cluster: TransfersOptions) {
    this.#cluster = cluster;
  }

  /** Whether one is offered that no receiver has taken or declined. */
  get waiting(): boolean {
    return this.#offered.length > 0;
  }

  offer(node: TestNode, to: ReplicaId): void {
    const { term } = node.core;
    const toIt = this.#offered.filter((t) => t.sender === node.core && t.to === to);
    assert(!toIt.some((t) => t.term === term), 'one snapshot at a time to each follower within a leadership');
    this.#offered.push({ from: node.id, sender: node.core, to, term, meta: node.applied });
  }

  /** What the host was sending to a replica that is no member any more ends. */
  membership(node: TestNode, conf: ConfState): void {
    this.#offered = this.#offered.filter((t) => t.sender !== node.core || isMember(conf, t.to));
  }

  /** Gives an offer to its receiver, or breaks it off. */
  move(pick: number, fail: boolean): void {
    if (this.#offered.length === 0) return;
    const { node, isCut, turn } = this.#cluster;
    const [transfer] = this.#offered.splice(pick % this.#offered.length, 1) as [Transfer];
    const target = node(transfer.to);
    if (!target.up || fail || isCut(transfer.from, transfer.to) || target.applyQueue.length > 0) {
      this.report(transfer, false);
      return;
    }
    if (target.core.acceptsSnapshot(transfer.from, transfer.term, transfer.meta)) target.installing = transfer;
    else this.report(transfer, false);
    turn(target);
  }

  /** Ends what a node is installing. */
  finish(node: TestNode, transfer: Transfer, fail: boolean): void {
    node.installing = undefined;
    if (fail) {
      node.core.installFailed();
    } else {
      const { meta } = transfer;
      node.disk.checkpoint = meta;
      node.applied = meta;
      node.core.installed(meta);
    }
    this.#cluster.turn(node);
    this.report(transfer, !fail);
  }

  /** A host reports within the leadership that wanted the snapshot only. */
  report(transfer: Transfer, ok: boolean): void {
    const sender = this.#cluster.node(transfer.from);
    if (!sender.up || sender.core !== transfer.sender || sender.core.term !== transfer.term) return;
    sender.core.reportSnapshot(transfer.to, ok, transfer.meta.index);
    this.#cluster.turn(sender);
  }
}
