/**
 * Observes every action of Raft on the nodes as it happens, and checks it against what is known about each group.
 *
 * O1. The state that the code reports is compared with what left it: its messages, its log records, the entries that
 *     its state machine received, and the bytes on the medium of its disk.
 * O2. A promise (a vote, a vote request, an acknowledgement) is checked when it leaves, against the medium (design §4).
 * O3. Violations go to `fail`, never into the code under observation.
 * O4. A replica continues alone only if so many replicas are lost that no quorum is left, and only if it holds
 *     everything that any other remaining replica knows to be committed (raft/core/forced.ts). What it lacks is lost
 *     with the others. A replica that its node has removed, because its group had removed it, does not remain. If that
 *     happens to the one that continues alone before it has applied the entry by which it does, it has decided nothing,
 *     and another one may continue.
 * O5. A group may end while it runs: once another group has the data that it replicates, its replicas end one by one,
 *     with their logs. Entries that are still committed there need not be durable, because they have no effect
 *     (dataserver/range/merges.ts MR1).
 */

import { assert } from '@remora/base';
import {
  type ConfState,
  decodeConfChange,
  type Entry,
  type Group,
  type GroupAppend,
  type GroupMessage,
  type LogPosition,
  type Message,
  type SnapshotMeta,
} from '@remora/raft';
import type { Trace } from '../trace.ts';
import { require } from '../violation.ts';
import { GroupTruth } from './group-truth.ts';
import type { ObservedNode } from './observed-node.ts';
import { isQuorumOf } from './quorum.ts';
import { placeOf, type ReplicaView } from './replica-view.ts';

const TYPES: readonly Message['type'][] = [
  'preVote',
  'preVoteResponse',
  'vote',
  'voteResponse',
  'append',
  'appendResponse',
  'heartbeat',
  'heartbeatResponse',
  'snapshot',
  'timeoutNow',
];

export interface ObserverDeps {
  readonly trace: Trace;
  readonly node: (nodeId: number) => ObservedNode | undefined;
  /** Whether a replica's disk is lost. What it had acknowledged before still counts. */
  readonly isLost: (view: ReplicaView) => boolean;
  /** Whether the node of a replica that never began is lost for good: it was to hold a part of a split. */
  readonly isHomeLost?: (groupId: number, replicaId: number) => boolean;
  /** A group continues alone. Its entries after this index are lost. */
  readonly onAlone?: (groupId: number, index: number) => void;
  readonly fail: (error: unknown) => void;
}

export class Observer {
  readonly #deps: ObserverDeps;
  readonly #groups = new Map<number, GroupTruth>();

  constructor(deps: ObserverDeps) {
    this.#deps = deps;
  }

  /** An observer that watches one node separately. Its violations are ignored. */
  apart(): Observer {
    return new Observer({ ...this.#deps, isLost: () => false, fail: () => {} });
  }

  /** A group begins with its first membership, after the position that its replicas have already applied. */
  addGroup(groupId: number, conf: ConfState, begins?: LogPosition): void {
    this.#groups.set(groupId, new GroupTruth(groupId, conf, begins));
  }

  has(groupId: number): boolean {
    return this.#groups.has(groupId);
  }

  groups(): IterableIterator<GroupTruth> {
    return this.#groups.values();
  }

  group(groupId: number): GroupTruth {
    const group = this.#groups.get(groupId);
    assert(group !== undefined, `there is no group ${groupId}`);
    return group;
  }

  /** O5. */
  over(groupId: number): void {
    this.group(groupId).over = true;
  }

  view(groupId: number, replicaId: number): ReplicaView | undefined {
    return this.#groups.get(groupId)?.views.get(replicaId);
  }

  /** Also of a replica that was left out when another one continued alone. Its log is followed, and not checked. */
  anyView(groupId: number, replicaId: number): ReplicaView | undefined {
    return this.view(groupId, replicaId) ?? this.#groups.get(groupId)?.past.get(replicaId);
  }

  addView(view: ReplicaView): void {
    const { views, past } = this.group(view.groupId);
    (past.has(view.replicaId) ? past : views).set(view.replicaId, view);
  }

  /** Runs a check, and reports what it finds. (O3) */
  checked(look: () => void): void {
    try {
      look();
    } catch (error) {
      this.#deps.fail(error);
    }
  }

  // ------------------------------------------------------------------------------------------ what leaves a node

  sent(node: ObservedNode, messages: readonly GroupMessage[]): void {
    for (const { groupId, message } of messages) {
      this.#deps.trace.add('send', node.id, groupId, TYPES.indexOf(message.type), message.term, '');
      const view = this.view(groupId, message.from);
      if (view !== undefined) this.checked(() => this.#sent(node, view, message));
    }
  }

  #sent(node: ObservedNode, view: ReplicaView, message: Message): void {
    if (message.type === 'vote') this.#vote(node, view, message.term, message.from);
    else if (message.type === 'voteResponse' && !message.reject) this.#vote(node, view, message.term, message.to);
    else if (message.type === 'appendResponse' && !message.reject) this.#acknowledged(node, view, message);
  }

  #vote(node: ObservedNode, view: ReplicaView, term: number, candidate: number): void {
    require(view.vote.term !== term || view.vote.candidate === candidate, 'one vote per term', () =>
      `${placeOf(view)} votes for ${view.vote.candidate} and ${candidate} in term ${term}`);
    if (term > view.vote.term) view.vote = { term, candidate };
    const durable = node.durable.groups.get(view.groupId);
    const kept = durable !== undefined && durable.term === term && durable.vote === candidate;
    require(kept, 'promise durable', () =>
      `${placeOf(view)} votes for ${candidate} in term ${term}; its disk has term ${durable?.term}, vote ${durable?.vote}`);
  }

  #acknowledged(
    node: ObservedNode,
    view: ReplicaView,
    message: { readonly term: number; readonly index: number },
  ): void {
    const durable = node.durable.groups.get(view.groupId);
    const { index, term } = message;
    if (index === 0) return;
    require(durable !== undefined && durable.term >= term, 'promise durable', () =>
      `${placeOf(view)} acknowledges index ${index} in term ${term}; its disk has term ${durable?.term}`);
    if (durable === undefined || index <= durable.start.index) return;
    if ((node.stored(view.groupId)?.applied.index ?? 0) >= index) return;
    const leader = this.view(view.groupId, this.group(view.groupId).leaderOf(term) ?? 0);
    const leads = leader !== undefined && leader.role === 'leader' && leader.term === term;
    const expected = (leads ? leader : view).termAt(index);
    if (expected === undefined) return; // compacted at the leader meanwhile
    require(durable.termAt(index) === expected, 'promise durable', () =>
      `${placeOf(view)} acknowledges index ${index} of term ${expected}; its disk has term ${durable.termAt(index)} there`);
  }

  /** Records are appended to a node's log. */
  appended(node: ObservedNode, batch: readonly GroupAppend[]): void {
    for (const append of batch) {
      const view = this.#viewOn(node, append.groupId) ?? this.#leftOut(node, append);
      const group = node.group(append.groupId);
      if (view !== undefined && group !== undefined) this.checked(() => this.#appended(view, append, group));
    }
  }

  /** O4. Follows the log of a replica that was left out. Returns it if it continues alone in place of another one. */
  #leftOut(node: ObservedNode, append: GroupAppend): ReplicaView | undefined {
    const truth = this.#groups.get(append.groupId);
    const view = truth?.past.get(node.stored(append.groupId)?.replicaId ?? 0);
    if (truth === undefined || view === undefined) return undefined;
    if (!append.entries.some((entry) => isForced(entry) && !truth.knows(entry))) {
      view.follow(append);
      return undefined;
    }
    const before = truth.views.get(truth.aloneUndecided ?? 0);
    this.checked(() =>
      require(before !== undefined && !this.#remains(before), 'alone without a majority', () =>
        `${placeOf(view)} goes on alone, and another replica has done so before`),
    );
    truth.readmit(view);
    return view;
  }

  /** Whether its node still has the replica. */
  #remains({ groupId, replicaId, nodeId }: ReplicaView): boolean {
    return this.#deps.node(nodeId)?.stored(groupId)?.replicaId === replicaId;
  }

  #appended(view: ReplicaView, append: GroupAppend, group: Group): void {
    this.#goesOnAlone(view, append);
    this.group(append.groupId).appended(view, append, group);
    view.follow(append);
    const last = append.entries.at(-1);
    this.#deps.trace.add('append', view.nodeId, append.groupId, last?.index ?? 0, last?.term ?? 0);
    this.#confRules(view, append, group);
  }

  /** O4. */
  #goesOnAlone(view: ReplicaView, { entries }: GroupAppend): void {
    const truth = this.group(view.groupId);
    const forced = entries.find((entry) => isForced(entry) && !truth.knows(entry));
    if (forced === undefined) return;
    const isLost = (id: number): boolean => {
      const other = truth.views.get(id);
      if (other !== undefined) return this.#deps.isLost(other);
      return truth.past.has(id) || this.#deps.isHomeLost?.(view.groupId, id) === true;
    };
    require(!isQuorumOf(view.conf, (id) => !isLost(id)), 'alone without a majority', () =>
      `${placeOf(view)} goes on alone, and a quorum of ${JSON.stringify(view.conf)} is left`);
    for (const other of truth.views.values()) {
      if (isLost(other.replicaId) || !this.#remains(other)) continue;
      const term = other.termAt(other.commit);
      require(term === undefined || view.holds(other.commit, term), 'the best goes on', () =>
        `${placeOf(view)} goes on alone without (index ${other.commit}, term ${term}), which ${placeOf(other)} has committed`);
    }
    const kept = truth.goesOnAlone(view, forced);
    this.#deps.onAlone?.(view.groupId, kept);
  }

  /**
   * Rules for a leader's own membership changes: one at a time, and only after an entry of its own term (traps 1, 2).
   */
  #confRules(view: ReplicaView, append: GroupAppend, group: Group): void {
    if (group.role !== 'leader') return;
    const own = append.entries.find((entry) => entry.type === 'conf' && entry.term === group.term);
    if (own === undefined) return;
    const { applied, commit, conf } = group.status();
    this.group(view.groupId).confProposed(view, applied, conf);
    const before = append.entries.find((entry) => entry.term === group.term);
    const committedTerm = this.group(view.groupId).committedTerm(commit);
    require(view.termAt(commit) === group.term || committedTerm === group.term, 'one pending membership change', () =>
      `${placeOf(view)} proposes a change at ${own.index} before an entry of its term ${group.term} is committed ` +
      `(commit ${commit}, first here ${before?.index})`);
  }

  // ------------------------------------------------------------------------------------------ what a node is

  /** Called after a node did something. Checks every replica on it that changed. */
  looked(node: ObservedNode): void {
    for (const groupId of node.groupIds) {
      const view = this.#viewOn(node, groupId);
      const group = node.group(groupId);
      if (view === undefined || group === undefined) continue;
      try {
        this.#look(view, group);
      } catch (error) {
        this.#deps.fail(error); // O3
      }
    }
  }

  #look(view: ReplicaView, group: Group): void {
    const { role, term, commit, applied, lastIndex, conf } = group.status();
    require(term >= view.term && term >= view.vote.term && commit >= view.commit, 'terms and commit grow', () =>
      `${placeOf(view)}: term ${view.term} → ${term} (voted in ${view.vote.term}), commit ${view.commit} → ${commit}`);
    require(applied <= commit && commit <= lastIndex, 'applied within commit', () =>
      `${placeOf(view)}: applied ${applied}, commit ${commit}, last ${lastIndex}`);
    const truth = this.group(view.groupId);
    const newLeader = role === 'leader' && (view.role !== 'leader' || view.term !== term);
    if (role !== view.role || term !== view.term)
      this.#deps.trace.add('role', view.nodeId, view.groupId, term, 0, role);
    const confBefore = view.conf;
    view.role = role;
    view.term = term;
    view.termMax = Math.max(view.termMax, term);
    view.conf = conf;
    view.applied = applied;
    if (newLeader) truth.elected(view);
    if (commit === view.commit) return;
    const commitBefore = truth.committedIndex;
    view.commit = commit;
    this.#deps.trace.add('commit', view.nodeId, view.groupId, commit, term);
    if (!truth.committed(view, commit, term) || truth.over) return; // O5
    const committedTerm = truth.committedTerm(commit) ?? 0;
    const holds = (id: number) => this.#durablyHolds(truth.views.get(id), commit, committedTerm);
    const alone = truth.decidesAlone(commit, commitBefore);
    const enough = alone === undefined ? isQuorumOf(confBefore, holds) || isQuorumOf(conf, holds) : holds(alone);
    require(enough, 'commit durable on a quorum', () =>
      `${placeOf(view)} committed (index ${commit}, term ${committedTerm}), which is on the disks of ` +
      `${conf.voters.filter(holds).join(', ')} of ${JSON.stringify(conf)}`);
  }

  /** Whether a replica's disk holds an entry, either in its log or in its engine's state. */
  #durablyHolds(view: ReplicaView | undefined, index: number, term: number): boolean {
    if (view === undefined) return false;
    if (this.#deps.isLost(view)) return true;
    const { groupId, replicaId, nodeId } = view;
    const node = this.#deps.node(nodeId);
    const stored = node?.stored(groupId);
    if (node === undefined || stored?.replicaId !== replicaId) return false;
    if (stored.applied.index >= index) return true;
    const durable = node.durable.groups.get(groupId);
    return durable !== undefined && (durable.start.index >= index || durable.termAt(index) === term);
  }

  // ------------------------------------------------------------------------------------------ state machines

  /**
   * A state machine applies an entry. `checksum` identifies the result and is the same on every replica. Returns true
   * if no replica has applied the entry before.
   */
  applied(
    node: ObservedNode,
    groupId: number,
    entry: Entry,
    state: { readonly checksum: number; readonly conf: ConfState },
  ): boolean {
    const view = this.#viewOn(node, groupId);
    const group = node.group(groupId);
    if (view === undefined || group === undefined) return false;
    const truth = this.group(groupId);
    let first = false;
    this.checked(() => {
      if (entry.index > truth.committedIndex) this.#look(view, group);
      first = truth.applied(view, entry, state);
      this.#deps.trace.add('applied', node.id, groupId, entry.index, entry.term);
    });
    return first;
  }

  /** A state machine installed a snapshot. `checksum` is that of the entry at its position. */
  installed(node: ObservedNode, groupId: number, meta: SnapshotMeta, checksum: number): void {
    const view = this.#viewOn(node, groupId);
    if (view === undefined) return;
    this.checked(() => {
      this.group(groupId).installed(view, meta, checksum);
      this.#deps.trace.add('installed', node.id, groupId, meta.index, meta.term);
    });
  }

  #viewOn(node: ObservedNode, groupId: number): ReplicaView | undefined {
    const replicaId = node.stored(groupId)?.replicaId;
    return replicaId === undefined ? undefined : this.view(groupId, replicaId);
  }
}

function isForced({ type, data }: Entry): boolean {
  return type === 'conf' && decodeConfChange(data).transition === 'forced';
}
