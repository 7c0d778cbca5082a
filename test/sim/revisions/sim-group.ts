/**
 * A Raft group with the worst behaviour that its users may see: everything that Raft allows, drawn from a seed, without
 * the protocol behind it.
 *
 * SG1. Committed entries form one log. Members apply it in order, each at its own pace.
 * SG2. Of a deposed leader's proposals, a prefix may be committed. The rest never is.
 * SG3. A deposed leader continues as leader until it learns of the new term. Its state machine learns of a role change
 *      even later.
 * SG4. A read is confirmed at some moment after its request, if the member led at that moment, and is answered later.
 */
import { assert, type SeededRandom } from '@remora/base';
import type { ManualClock } from '@remora/base/testing';
import { confOf, type Entry, type Group, type GroupStatus, type Refusal, type Role } from '@remora/raft';

type RoleChange = { readonly role: Role; readonly term: number; readonly leader: number };

/** The part of a state machine that this group uses. */
export interface Machine {
  apply(entries: readonly Entry[], conf: ReturnType<typeof confOf>): void | Promise<void>;
  roleChanged(change: RoleChange): void;
}

const READ_POLL_MS = 2;

export class SimGroup {
  readonly clock: ManualClock;
  readonly random: SeededRandom;
  readonly id: number;
  readonly committed: Entry[] = [];
  readonly members: readonly Member[];
  term = 0;
  leader: Member | undefined;
  /** No entry is committed before this time. */
  stalledUntilMs = 0;

  constructor(
    id: number,
    nodes: readonly number[],
    ports: { readonly clock: ManualClock; readonly random: SeededRandom },
  ) {
    this.id = id;
    this.clock = ports.clock;
    this.random = ports.random;
    this.members = nodes.map((nodeId) => new Member(this, nodeId));
  }

  member(nodeId: number): Member {
    const member = this.members.find(({ replicaId }) => replicaId === nodeId);
    assert(member !== undefined, `node ${nodeId} is a member`);
    return member;
  }

  /** SG2. The other members learn of it later (SG3). */
  elect(member: Member): void {
    const { leader } = this;
    if (leader !== undefined) {
      const kept = leader === member ? leader.pending.length : this.random.int(leader.pending.length + 1);
      this.committed.push(...leader.pending.splice(0, kept));
    }
    this.leader = member;
    member.lead(++this.term);
  }

  /** Commits some of the leader's proposals. */
  commit(): void {
    if (this.leader === undefined || this.clock.monotonicMs() < this.stalledUntilMs) return;
    const { pending } = this.leader;
    if (pending.length > 0) this.committed.push(...pending.splice(0, 1 + this.random.int(pending.length)));
  }
}

export class Member implements Group {
  readonly #group: SimGroup;
  readonly replicaId: number;
  machine: Machine | undefined;
  role: Role = 'follower';
  term = 0;
  leader = 0;
  /** Proposed in this term and not committed. */
  pending: Entry[] = [];
  #lastIndex = 0;
  #applied = 0;
  /** The number of the process's life. */
  #life = 0;
  #applying = false;
  /** The state machine does not know this change yet. Nothing is applied before it does. */
  #change: RoleChange | undefined;

  constructor(group: SimGroup, replicaId: number) {
    this.#group = group;
    this.replicaId = replicaId;
  }

  get groupId(): number {
    return this.#group.id;
  }

  get ready(): boolean {
    return this.role === 'leader' && this.#group.committed[this.#applied - 1]?.term === this.term;
  }

  /** The process restarts as a follower from a checkpoint at this position. */
  restart(machine: Machine, applied: number): void {
    this.machine = machine;
    this.role = 'follower';
    this.leader = 0;
    this.pending = this.#group.leader === this ? this.pending : [];
    this.#applied = applied;
    this.#life++;
    this.#change = undefined;
  }

  lead(term: number): void {
    this.term = term;
    this.role = 'leader';
    this.leader = this.replicaId;
    const index = this.#group.committed.length + 1;
    this.pending = [{ index, term, type: 'normal', data: new Uint8Array(0) }];
    this.#lastIndex = index;
    this.#tell();
  }

  /** It learns of the newest term (SG3). */
  hear(): void {
    const { term, leader } = this.#group;
    if (this.term >= term) return;
    this.term = term;
    this.role = 'follower';
    this.leader = leader?.replicaId ?? 0;
    this.pending = [];
    this.#tell();
  }

  /** If several changes happen before the call, the state machine learns only of the last one. */
  #tell(): void {
    const { role, term, leader } = this;
    const known = this.#change !== undefined;
    this.#change = { role, term, leader };
    if (known) return;
    const life = this.#life;
    const { clock, random } = this.#group;
    clock.setTimer(random.int(3) === 0 ? random.int(240) : 0, () => {
      const change = this.#change;
      if (life !== this.#life || change === undefined) return;
      this.#change = undefined;
      this.machine?.roleChanged(change);
    });
  }

  /**
   * Applies some of the committed entries. A deposed leader that does not know it gets no entries of later terms (SG3).
   */
  apply(): void {
    const { committed, random } = this.#group;
    if (this.#applying || this.#change !== undefined || this.machine === undefined) return;
    for (let count = 1 + random.int(5); count > 0; count--) {
      const entry = committed[this.#applied];
      if (entry === undefined || entry.term > this.term) return;
      const waiting = this.machine.apply([entry], confOf([1, 2, 3]));
      if (waiting === undefined) this.#applied++;
      else {
        this.#applying = true;
        void waiting.then(() => {
          this.#applying = false;
          this.#applied++;
        });
        return;
      }
    }
  }

  propose(data: Uint8Array) {
    if (this.role !== 'leader') return { refused: 'notLeader' as const };
    const entry: Entry = { index: ++this.#lastIndex, term: this.term, type: 'normal', data };
    this.pending.push(entry);
    return { index: entry.index, term: entry.term };
  }

  /** SG4. */
  readIndex(done: (refused: Refusal | undefined) => void): void {
    if (this.role !== 'leader') return done('notLeader');
    const { clock, random } = this.#group;
    const { term } = this;
    const life = this.#life;
    let needs: number | undefined;
    const confirmAtMs = clock.monotonicMs() + random.int(6);
    const answerAtMs = confirmAtMs + random.int(random.int(6) === 0 ? 60 : 3);
    const poll = (): void => {
      if (life !== this.#life) return; // Its process ended.
      if (this.role !== 'leader' || this.term !== term) return done('notLeader');
      const nowMs = clock.monotonicMs();
      const group = this.#group;
      const leads = group.leader === this && group.committed.some((entry) => entry.term === term);
      if (needs === undefined && nowMs >= confirmAtMs && leads) needs = group.committed.length;
      if (needs !== undefined && nowMs >= answerAtMs && this.#applied >= needs) return done(undefined);
      clock.setTimer(READ_POLL_MS, poll);
    };
    clock.setTimer(READ_POLL_MS, poll);
  }

  leaseRead(done: (refused: Refusal | undefined) => void): void {
    this.readIndex(done);
  }

  readonly transferring = false;

  hasLease(): boolean {
    return false;
  }

  checkpointed(): void {}

  proposeConf() {
    return { refused: 'confInvalid' as const };
  }

  tellCommits(): void {}

  transferLeader() {
    return { refused: 'notLeader' as const };
  }

  forceAlone() {
    return { refused: 'noData' as const };
  }

  status(): GroupStatus {
    const { groupId, replicaId, role, term, leader } = this;
    const conf = confOf([1, 2, 3]);
    const applied = this.#applied;
    return {
      groupId,
      replicaId,
      role,
      term,
      leader,
      applied,
      conf,
      commit: applied,
      lastIndex: this.#lastIndex,
      lastTerm: term,
      silentTicks: 0,
      firstIndex: 1,
      changePending: false,
      progress: [],
    };
  }
}
