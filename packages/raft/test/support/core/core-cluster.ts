/**
 * A cluster of cores over a hostile network and disks, for the property tests: messages are lost, repeated and
 * reordered, links fail one way, fsyncs are late, crashes lose whatever was not synced. After each step it checks
 * (here and in `invariants.ts`):
 *
 * X1. Election safety: one leader per term.
 * X2. Leader append-only; log matching: equal (index, term) means equal entry and equal predecessor.
 * X3. Leader completeness: a new leader holds every committed entry.
 * X4. State machine safety: all replicas apply the same entries in the same order; applied ≤ commit.
 * X5. Nothing is claimed before its fsync: votes, vote requests, acknowledgements, commits (durable on a quorum).
 * X6. A read is given an index at or above everything committed anywhere when it was asked for.
 * X7. Membership: all replicas find the same configuration behind the same change, quorums of consecutive
 *     configurations overlap, a leader appends a change only when it has applied the one before, a log holds at most
 *     one change that it does not know committed, and a leader is a voter.
 */
import { assert, SeededRandom, utf8 } from '@remora/base';
import type { RaftConfig } from '../../../src/core/config.ts';
import { LEAVE_JOINT } from '../../../src/core/membership/conf-change.ts';
import { confOf, EMPTY_CONF, isJoint, isVoter, membersOf } from '../../../src/core/membership/membership.ts';
import type { ConfState, Entry, Message, ReplicaId } from '../../../src/core/types.ts';
import { bootCore } from './boot.ts';
import { type ChangeKind, confBehind, kindsOf, quorumsOverlap, randomChange } from './changes.ts';
import { cutTo, type Disk, diskFrom, emptyDisk, lastOf, type Persist, readFrom, termAt, writeTo } from './core-disk.ts';
import type { TestNode } from './core-node.ts';
import { Invariants } from './invariants.ts';
import { LateCalls } from './late-calls.ts';
import { Transfers } from './transfers.ts';

const IN_FLIGHT_MAX = 400;

export class TestCluster {
  readonly nodes: readonly TestNode[];
  readonly #config: Partial<RaftConfig>;
  readonly #mergedHeartbeats: boolean;
  readonly #random: SeededRandom;
  readonly #network: Message[] = [];
  /** Merged heartbeats and their replies under way. */
  readonly #merged = new LateCalls();
  readonly #transfers: Transfers;
  readonly #cut = new Set<string>();
  readonly #invariants: Invariants;
  /** Memberships behind each change applied anywhere, by index. */
  readonly #confs = new Map<number, ConfState>();
  /** What kinds of changes were applied, and which of them took its leader out. */
  readonly changes = new Set<ChangeKind | 'leaderLeft'>();
  readonly #readFloors = new Map<string, number>();
  /** Durable entries never stay in memory. */
  readonly #evict: boolean;
  readonly #firstLeader: ReplicaId | undefined;
  /** Answers to reads that the cores could use, and that they could not. */
  readsAnswered = 0;
  /** Turns with which entries waited for some followers. */
  waits = 0;
  #nextContext = 1;
  #nextValue = 1;

  constructor(options: {
    readonly voters: number;
    readonly learners?: number;
    /** Replicas that are no members at first: they know the group's first membership, or none. */
    readonly spares?: number;
    readonly sparesKnow?: 'first' | 'none';
    readonly seed: number;
    readonly config?: Partial<RaftConfig>;
    readonly mergedHeartbeats?: boolean;
    readonly evict?: boolean;
    /** The members begin behind a position of their own, under this leader. */
    readonly firstLeader?: ReplicaId;
  }) {
    this.#evict = options.evict ?? false;
    this.#firstLeader = options.firstLeader;
    const { voters, learners = 0, spares = 0 } = options;
    const ids = Array.from({ length: voters + learners + spares }, (_, i) => i + 1);
    const conf = confOf(ids.slice(0, voters), ids.slice(voters, voters + learners));
    this.#config = options.config ?? {};
    this.#mergedHeartbeats = options.mergedHeartbeats ?? false;
    this.#random = new SeededRandom(options.seed);
    this.#invariants = new Invariants((id) => this.#node(id));
    this.#transfers = new Transfers({
      node: (id) => this.#node(id),
      turn: (node) => this.#turn(node),
      isCut: (from, to) => this.#cut.has(`${from}>${to}`),
    });
    this.nodes = ids.map((id) => {
      const spare = id > voters + learners;
      const first = spare && options.sparesKnow === 'none' ? EMPTY_CONF : conf;
      const disk = this.#firstLeader === undefined ? emptyDisk(first) : diskFrom({ index: 1, term: 1 }, first);
      const node = { id, disk, up: true, ...this.#boot(id, disk, false) };
      return node;
    });
  }

  /** The highest index known committed anywhere. */
  get committedIndex(): number {
    return this.#invariants.committedIndex;
  }

  #boot(id: ReplicaId, disk: Disk, restarted: boolean): Omit<TestNode, 'id' | 'disk' | 'up'> {
    const given = { config: this.#config, random: this.#random, firstLeader: this.#firstLeader, evicted: this.#evict };
    const core = bootCore({ id, disk, restarted, ...given });
    const { hardState, start, checkpoint } = disk;
    return {
      core,
      unsynced: [],
      applyQueue: [],
      applied: checkpoint,
      shadow: { hardState, start, entries: disk.entries.slice(), checkpoint },
      leaderTerm: 0,
      seenCommit: 0,
      installing: undefined,
      reads: [],
    };
  }

  // ------------------------------------------------------------------------------------------ what can happen

  tick(node: TestNode): void {
    if (!node.up) return;
    node.core.tick();
    if (this.#mergedHeartbeats) this.#sendMerged(node);
    this.#turn(node);
  }

  /** The host's part with entries that wait for some followers. */
  review(node: TestNode): void {
    if (!node.up || !node.core.appendsWait) return;
    node.core.reviewAppends();
    this.#turn(node);
  }

  /** The host's part with merged heartbeats: steady followers are told, exceptions come back (design §5). */
  #sendMerged(node: TestNode): void {
    const { core } = node;
    for (const { replica, epoch } of core.steadyFollowers()) {
      core.mergeHeartbeats(replica, epoch, true);
      const to = this.#node(replica);
      this.#late(node, to, () => {
        const accepted = to.core.heartbeatFrom(node.id);
        this.#late(to, node, () => {
          if (node.core !== core) return; // a reply of an older boot counts for nothing
          if (accepted) core.heartbeatAnsweredBy(replica, epoch);
          else core.heartbeatRefusedBy(replica, epoch);
          this.#turn(node);
        });
      });
    }
  }

  /** Something that goes from one node to another, in its own time or never. */
  #late(from: TestNode, to: TestNode, arrive: () => void): void {
    this.#merged.add(() => {
      if (to.up && !this.#cut.has(`${from.id}>${to.id}`)) arrive();
    });
  }

  propose(node: TestNode): void {
    if (!node.up) return;
    node.core.propose(utf8(`v${this.#nextValue++}`));
    this.#turn(node);
  }

  change(node: TestNode, pick: number): void {
    if (!node.up) return;
    node.core.proposeConf(randomChange(node.core.conf, pick, this.nodes.length));
    this.#turn(node);
  }

  read(node: TestNode): void {
    if (!node.up) return;
    const context = this.#nextContext++;
    if (node.core.readIndex(context) === undefined) this.#readFloors.set(`${node.id}/${context}`, this.committedIndex);
    this.#turn(node);
  }

  transfer(node: TestNode, to: TestNode): void {
    if (!node.up) return;
    node.core.transferLeader(to.id);
    this.#turn(node);
  }

  /** Delivers some message in flight; it may arrive again later. */
  deliver(pick: number, again = false): void {
    this.#merged.deliver(pick, again);
    if (this.#network.length === 0) return;
    const index = pick % this.#network.length;
    const message = this.#network[index] as Message;
    if (!again) this.#network.splice(index, 1);
    this.#receive(message);
  }

  drop(pick: number): void {
    this.#merged.drop(pick);
    if (this.#network.length > 0) this.#network.splice(pick % this.#network.length, 1);
  }

  /** The fsync of the oldest batch is done. */
  sync(node: TestNode): void {
    const persist = node.unsynced.shift();
    if (!node.up || persist === undefined) return;
    writeTo(node.disk, persist);
    node.core.persisted(persist.mark);
    this.#turn(node);
  }

  apply(node: TestNode): void {
    const entry = node.applyQueue.shift();
    if (!node.up || entry === undefined) return;
    assert(entry.index === node.applied.index + 1, 'X4: entries are applied in order, without a gap');
    assert(this.#invariants.committedTerm(entry.index) === entry.term, 'X4: replicas apply the same entries');
    assert(entry.index <= node.core.commit, 'X4: applied ≤ commit');
    let { conf } = node.applied;
    if (entry.type === 'conf') conf = this.#applyConf(node, entry);
    node.applied = { index: entry.index, term: entry.term, conf };
    node.core.appliedTo(entry.index);
    this.#turn(node);
  }

  /** A read of old entries is answered, in any order, with the disk of now or of when it was asked for. */
  answerRead(node: TestNode, pick: number): void {
    if (!node.up || node.reads.length === 0) return;
    const [{ read, entries }] = node.reads.splice(pick % node.reads.length, 1) as [TestNode['reads'][number]];
    node.core.entriesRead(read, readFrom(pick % 2 === 0 ? entries : node.disk.entries, read));
    this.readsAnswered++;
    this.#turn(node);
  }

  #applyConf(node: TestNode, entry: Entry): ConfState {
    const before = node.applied.conf;
    const after = confBehind(before, entry);
    const known = this.#confs.get(entry.index);
    if (known === undefined) {
      this.#confs.set(entry.index, after);
      assert(quorumsOverlap(before, after, this.nodes.length), 'X7: quorums of consecutive configurations overlap');
    } else assert(JSON.stringify(known) === JSON.stringify(after), 'X7: one configuration behind a change');
    for (const kind of kindsOf(before, after)) this.changes.add(kind);
    if (node.core.role === 'leader' && !isVoter(after, node.id)) this.changes.add('leaderLeft');
    if (after === before) return after;
    this.#transfers.membership(node, after);
    node.core.applyConf(after);
    return after;
  }

  /** A checkpoint holds only what is durable in the log (design §6); then the log may be cut. */
  compact(node: TestNode, keep: number): void {
    if (!node.up || node.installing !== undefined || node.applied.index > lastOf(node.disk).index) return;
    if (termAt(node.disk, node.applied.index) !== node.applied.term) return;
    node.disk.checkpoint = node.applied;
    const index = Math.max(node.disk.start.index, node.applied.index - keep);
    cutTo(node.disk, index);
    cutTo(node.shadow, index);
    node.core.compactTo(index);
  }

  /** Loses everything but what was synced; batches under way may have reached the disk, in order. */
  crash(node: TestNode, pick: number): void {
    if (!node.up) return;
    const reached = pick % (node.unsynced.length + 1);
    for (const persist of node.unsynced.slice(0, reached)) writeTo(node.disk, persist);
    node.up = false;
    node.unsynced = [];
    if (node.installing !== undefined) this.#transfers.report(node.installing, false);
    node.installing = undefined;
  }

  restart(node: TestNode): void {
    if (node.up) return;
    node.up = true;
    Object.assign(node, this.#boot(node.id, node.disk, true));
    this.#turn(node);
  }

  cutLink(from: TestNode, to: TestNode): void {
    this.#cut.add(`${from.id}>${to.id}`);
  }

  healLinks(): void {
    this.#cut.clear();
  }

  unreachable(node: TestNode, to: TestNode): void {
    if (!node.up) return;
    node.core.reportUnreachable(to.id);
    this.#turn(node);
  }

  /** Moves a snapshot on: offered, then installed or broken off. */
  moveSnapshot(pick: number, fail: boolean): void {
    const busy = this.nodes.find((node) => node.up && node.installing !== undefined);
    if (busy?.installing !== undefined) this.#transfers.finish(busy, busy.installing, fail);
    else this.#transfers.move(pick, fail);
  }

  /**
   * Everything works again: true when, within `ticks`, no configuration is joint any more and a new proposal is applied
   * by all members.
   */
  heals(ticks: number): boolean {
    this.healLinks();
    for (const node of this.nodes) this.restart(node);
    const target = this.committedIndex + 1;
    for (let i = 0; i < ticks; i++) {
      for (const node of this.nodes) this.tick(node);
      this.settle();
      const leader = this.nodes.find((node) => node.core.leaderReady);
      if (leader === undefined) continue;
      const { core, applied } = leader;
      const members = membersOf(applied.conf).map((id) => this.#node(id));
      if (!isJoint(applied.conf) && members.every((node) => node.applied.index >= target)) return true;
      if (isJoint(applied.conf) && !applied.conf.autoLeave) core.proposeConf(LEAVE_JOINT);
      this.propose(leader);
    }
    return false;
  }

  /** Runs until nothing is under way. */
  settle(): void {
    for (let round = 0; round < 1000; round++) {
      let busy = this.#network.length > 0 || this.#merged.count > 0 || this.#transfers.waiting;
      for (const node of this.nodes) {
        busy ||= node.unsynced.length > 0 || node.applyQueue.length > 0 || node.installing !== undefined;
        busy ||= node.reads.length > 0;
        while (node.reads.length > 0) this.answerRead(node, 0);
        while (node.unsynced.length > 0) this.sync(node);
        while (node.applyQueue.length > 0) this.apply(node);
      }
      const length = Math.max(this.#network.length, this.#merged.count);
      for (let i = 0; i < length; i++) this.deliver(0);
      this.moveSnapshot(0, false);
      if (!busy) return;
    }
    assert(false, 'messages go round for ever');
  }

  // ------------------------------------------------------------------------------------------ one turn, and its checks

  #node(id: ReplicaId): TestNode {
    return this.nodes[id - 1] as TestNode;
  }

  #receive(message: Message): void {
    const node = this.#node(message.to);
    if (!node.up || this.#cut.has(`${message.from}>${message.to}`)) return;
    node.core.step(message);
    this.#turn(node);
  }

  #turn(node: TestNode): void {
    while (node.core.hasReady()) {
      const ready = node.core.ready();
      if (ready.persist !== undefined) this.#takePersist(node, ready.persist);
      for (const message of ready.messages) this.#invariants.checkClaim(node, message);
      this.#network.push(...ready.messages);
      node.applyQueue.push(...ready.committed);
      for (const state of ready.readStates) {
        const floor = this.#readFloors.get(`${node.id}/${state.context}`);
        assert(floor !== undefined && state.index >= floor, 'X6: a read is linearizable');
      }
      for (const to of ready.snapshotsWanted) this.#transfers.offer(node, to);
      for (const read of ready.entriesWanted) node.reads.push({ read, entries: node.disk.entries });
      this.#invariants.check(node);
      if (this.#evict) node.core.evictTo(Number.POSITIVE_INFINITY);
    }
    if (node.core.appendsWait) this.waits++;
    this.#invariants.check(node); // not all that changes is handed out at once
    while (this.#network.length > IN_FLIGHT_MAX) this.#network.shift();
  }

  #takePersist(node: TestNode, persist: Persist): void {
    this.#invariants.appended(node, persist);
    node.unsynced.push(persist);
  }
}
