/** What must hold in a test cluster after each step: X1 to X3, X5, and parts of X4 and X7 (`core-cluster.ts`). */
import { assert } from '@remora/base';
import { isVoter } from '../../../src/core/membership/membership.ts';
import { isQuorum } from '../../../src/core/quorum.ts';
import type { Message, ReplicaId } from '../../../src/core/types.ts';
import { changesAfter, lastOf, type Persist, termAt, writeTo } from './core-disk.ts';
import type { TestNode } from './core-node.ts';

export class Invariants {
  readonly #node: (id: ReplicaId) => TestNode;
  readonly #leaders = new Map<number, ReplicaId>();
  readonly #entries = new Map<string, { readonly data: string; readonly previousTerm: number | undefined }>();
  /** Terms of committed entries, by index. */
  readonly #committed: number[] = [0];

  constructor(node: (id: ReplicaId) => TestNode) {
    this.#node = node;
  }

  /** The highest index known committed anywhere. */
  get committedIndex(): number {
    return this.#committed.length - 1;
  }

  committedTerm(index: number): number | undefined {
    return this.#committed[index];
  }

  /** X2: this was handed out to be persisted; it is in the node's shadow from now on. */
  appended(node: TestNode, persist: Persist): void {
    const { shadow } = node;
    const first = persist.entries[0];
    if (first !== undefined && node.core.role === 'leader' && node.leaderTerm === node.core.term) {
      assert(first.index > lastOf(shadow).index, 'X2: a leader only appends');
    }
    writeTo(shadow, persist);
    for (const entry of persist.entries) {
      const data = Buffer.from(entry.data).toString();
      const previousTerm = termAt(shadow, entry.index - 1);
      const key = `${entry.index}@${entry.term}`;
      const known = this.#entries.get(key);
      if (known === undefined) this.#entries.set(key, { data, previousTerm });
      else assert(known.data === data && known.previousTerm === previousTerm, 'X2: logs match');
    }
  }

  /** X5: what leaves is true of the disk at this moment. */
  checkClaim(node: TestNode, m: Message): void {
    const { hardState } = node.disk;
    const voted = (to: ReplicaId) => hardState.term === m.term && hardState.vote === to;
    if (m.type === 'vote') assert(voted(node.id), 'X5: a vote is asked for before the own one is durable');
    if (m.type === 'voteResponse' && !m.reject) assert(voted(m.to), 'X5: a vote leaves before it is durable');
    if (m.type === 'appendResponse' && !m.reject) {
      assert(hardState.term === m.term, 'X5: an acknowledgement leaves before its term is durable');
      const durable = Math.max(lastOf(node.disk).index, node.disk.checkpoint.index);
      assert(m.index <= durable, 'X5: an acknowledgement leaves before its entries are durable');
    }
  }

  check(node: TestNode): void {
    this.#checkLeader(node);
    this.#checkCommit(node);
    this.#checkMembership(node);
  }

  #checkLeader(node: TestNode): void {
    const { core } = node;
    if (core.role !== 'leader' || node.leaderTerm === core.term) return;
    node.leaderTerm = core.term;
    const known = this.#leaders.get(core.term);
    assert(known === undefined || known === node.id, 'X1: one leader per term');
    this.#leaders.set(core.term, node.id);
    for (let i = node.shadow.start.index + 1; i <= this.committedIndex; i++) {
      assert(termAt(node.shadow, i) === this.#committed[i], 'X3: a new leader holds every committed entry');
    }
  }

  #checkCommit(node: TestNode): void {
    const { commit } = node.core;
    const { shadow } = node;
    if (commit <= node.seenCommit) return;
    for (let i = Math.max(node.seenCommit, shadow.start.index) + 1; i <= commit; i++) {
      const term = termAt(shadow, i);
      assert(term !== undefined, 'X4: what is committed is in the log');
      const known = this.#committed[i];
      assert(known === undefined || known === term, 'X4: one entry per committed index');
      this.#committed[i] = term;
    }
    node.seenCommit = commit;
    const term = termAt(shadow, commit);
    const holds = (id: ReplicaId) => {
      const { disk } = this.#node(id);
      return disk.checkpoint.index >= commit || termAt(disk, commit) === term;
    };
    if (node.core.role === 'leader') assert(isQuorum(node.core.conf, holds), 'X5: committed is durable on a quorum');
  }

  #checkMembership({ core, shadow, applied }: TestNode): void {
    const own =
      core.role === 'leader' ? shadow.entries.findLast((e) => e.type === 'conf' && e.term === core.term) : undefined;
    if (own !== undefined && own.index > applied.index) {
      assert(
        changesAfter(shadow, applied.index) === 1,
        'X7: a leader appends a change when it has applied the last one',
      );
    }
    assert(changesAfter(shadow, core.commit) <= 1, 'X7: one change at most is not known committed');
    assert(core.role !== 'leader' || isVoter(core.conf, core.id), 'X7: a leader is a voter');
  }
}
