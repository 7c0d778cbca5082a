/**
 * Everything that is known about one group, over all its replicas: what was ever in a log, what was committed and
 * applied, and who led. Each event is checked against it as it happens.
 */
import type { ConfState, Entry, GroupAppend, LogPosition, Role } from '@remora/raft';
import { hashOfBytes } from '../hash.ts';
import { require } from '../violation.ts';
import { placeOf, type ReplicaView } from './replica-view.ts';

/** An entry as it was first seen in any log. */
interface KnownEntry {
  readonly prevTerm: number;
  /** A hash of the entry's content. */
  readonly content: number;
  readonly type: Entry['type'];
}

interface Committed {
  readonly term: number;
  /** The term of the replica that first showed it as committed. */
  readonly seenIn: number;
}

interface Election {
  readonly term: number;
  readonly replicaId: number;
  /** The leader's log at its election. */
  readonly startIndex: number;
  readonly terms: readonly number[];
}

const keyOf = (index: number, term: number): number => term * 2 ** 32 + index;
const termOf = (key: number): number => Math.floor(key / 2 ** 32);

export class GroupTruth {
  readonly groupId: number;
  readonly #known = new Map<number, KnownEntry>();
  /** By index, from the group's first entry. */
  readonly #committed: Committed[];
  /** By index: the state machine's checksum of the result. */
  readonly #checksums: number[];
  readonly #elections: Election[] = [];
  readonly #leaders = new Map<number, number>();
  /** All replicas that ever existed, by id. */
  readonly views = new Map<number, ReplicaView>();
  /** All memberships so far, each with the index of its entry. */
  readonly confs: { readonly index: number; readonly conf: ConfState }[];
  /** Replicas that were left out when one replica continued alone, by id. What they hold does not count any more. */
  readonly past = new Map<number, ReplicaView>();
  /** Another group now has the data that this group replicates (O5 of observer.ts). */
  over = false;
  /** The latest entry by which one replica continued alone. */
  #alone: (LogPosition & { readonly replicaId: number }) | undefined;

  /**
   * `begins`: the position that all replicas have applied before they have a log, because the group was made from
   * another one.
   */
  constructor(groupId: number, conf: ConfState, begins: LogPosition = { index: 0, term: 0 }) {
    this.groupId = groupId;
    const before = Array.from({ length: begins.index + 1 }, (_, i) => (i < begins.index ? 0 : begins.term));
    this.#committed = before.map((term) => ({ term, seenIn: 0 }));
    this.#checksums = before.map(() => 0);
    this.confs = [{ index: 0, conf }];
  }

  get committedIndex(): number {
    return this.#committed.length - 1;
  }

  committedTerm(index: number): number | undefined {
    return this.#committed[index]?.term;
  }

  get elections(): number {
    return this.#elections.length;
  }

  leaderOf(term: number): number | undefined {
    return this.#leaders.get(term);
  }

  // ------------------------------------------------------------------------------------------ logs

  /** A replica hands out records for persistence. Called before the view is updated. */
  appended(view: ReplicaView, append: GroupAppend, now: { readonly role: Role; readonly term: number }): void {
    const first = append.entries[0];
    if (first === undefined) return;
    const start = append.restartAt ?? view.start;
    const leads = view.role === 'leader' && now.role === 'leader' && view.term === now.term;
    require(!leads || (append.restartAt === undefined && first.index === view.last + 1), 'leader append-only', () =>
      `${placeOf(view)} leads term ${now.term} and replaced index ${first.index} of ${view.last}`);
    let prevTerm = first.index - 1 === start.index ? start.term : view.termAt(first.index - 1);
    for (const entry of append.entries) {
      require(prevTerm !== undefined, 'log matching', () => `${placeOf(view)}: a gap before index ${entry.index}`);
      this.#matches(view, entry, prevTerm ?? 0);
      prevTerm = entry.term;
    }
    this.#keepsCommitted(view, append);
  }

  #matches(view: ReplicaView, entry: Entry, prevTerm: number): void {
    const key = keyOf(entry.index, entry.term);
    const content = hashOfBytes(entry.data);
    const known = this.#known.get(key);
    if (known === undefined) {
      this.#known.set(key, { prevTerm, content, type: entry.type });
      return;
    }
    const same = known.prevTerm === prevTerm && known.content === content && known.type === entry.type;
    require(same, 'log matching', () =>
      `${placeOf(view)}: (index ${entry.index}, term ${entry.term}) is ${entry.type} ${content} after term ${prevTerm} here, ` +
      `${known.type} ${known.content} after term ${known.prevTerm} elsewhere`);
  }

  /** A replica never replaces an entry in its log that it knows to be committed. */
  #keepsCommitted(view: ReplicaView, append: GroupAppend): void {
    const first = append.entries[0];
    if (first === undefined || append.restartAt !== undefined || first.index > view.commit) return;
    for (const entry of append.entries) {
      if (entry.index > view.commit) return;
      require(view.termAt(entry.index) === entry.term, 'state machine safety', () =>
        `${placeOf(view)} replaced index ${entry.index}, which it had committed`);
    }
  }

  // ------------------------------------------------------------------------------------------ leaders

  elected(view: ReplicaView): void {
    const { term, replicaId } = view;
    const other = this.#leaders.get(term);
    require(other === undefined || other === replicaId, 'election safety', () =>
      `group ${this.groupId}: replicas ${other} and ${replicaId} lead term ${term}`);
    this.#leaders.set(term, replicaId);
    const election: Election = { term, replicaId, startIndex: view.start.index, terms: view.terms.slice() };
    this.#elections.push(election);
    const last = this.#committed.findLastIndex(({ seenIn }) => seenIn < term);
    if (last > 0) this.#complete(election, last);
  }

  #complete(election: Election, index: number): void {
    if (index <= election.startIndex) return;
    const term = this.#committed[index]?.term;
    require(election.terms[index - election.startIndex - 1] === term, 'leader completeness', () =>
      `group ${this.groupId}: replica ${election.replicaId} was elected for term ${election.term} without ` +
      `(index ${index}, term ${term}), which is committed`);
  }

  // ------------------------------------------------------------------------------------------ a majority is lost

  /** Whether the entry has been in any log. */
  knows({ index, term, type, data }: Entry): boolean {
    const known = this.#known.get(keyOf(index, term));
    return known?.type === type && known.content === hashOfBytes(data);
  }

  /**
   * With this entry a replica makes itself the only member (raft/core/forced.ts). Committed entries that it lacks are
   * lost, and from now on the truth is what it holds. Returns the last index that stays committed.
   */
  goesOnAlone(view: ReplicaView, { index, term }: LogPosition): number {
    const lacking = this.#committed.findIndex((entry, at) => !view.holds(at, entry.term));
    // A replica that went on alone before, and was removed, has an entry of its own at that index.
    const kept = Math.min(lacking === -1 ? this.#committed.length : lacking, this.#alone?.index ?? Infinity);
    this.#committed.length = kept;
    this.#checksums.length = kept;
    this.confs.splice(0, this.confs.length, ...this.confs.filter((one) => one.index < kept));
    this.#elections.length = 0;
    // A lost replica may have led in that term. No remaining replica has an entry of it (plan.ts RP1).
    for (const led of this.#leaders.keys()) if (led >= term) this.#leaders.delete(led);
    for (const key of this.#known.keys()) if (termOf(key) >= term) this.#known.delete(key);
    this.#alone = { index, term, replicaId: view.replicaId };
    for (const other of this.views.values()) if (other !== view) this.past.set(other.replicaId, other);
    for (const replicaId of this.past.keys()) this.views.delete(replicaId);
    return kept - 1;
  }

  /** The replica that continued alone, until it or another one has applied the entry by which it did. */
  get aloneUndecided(): number | undefined {
    const alone = this.#alone;
    return alone === undefined || this.#checksums[alone.index] !== undefined ? undefined : alone.replicaId;
  }

  /** Observes a replica again that was left out. */
  readmit(view: ReplicaView): void {
    this.past.delete(view.replicaId);
    this.views.set(view.replicaId, view);
  }

  /** The replica that decides alone that entries up to `commit` are committed. Undefined if it takes a quorum. */
  decidesAlone(commit: number, from: number): number | undefined {
    const alone = this.#alone;
    if (alone === undefined || from > alone.index || commit < alone.index) return undefined;
    return this.#committed[alone.index]?.term === alone.term ? alone.replicaId : undefined;
  }

  // ------------------------------------------------------------------------------------------ commit and apply

  /**
   * A replica reports that its log is committed up to `commit`. Returns true if no replica had reported that before.
   */
  committed(view: ReplicaView, commit: number, term: number): boolean {
    const known = this.committedIndex;
    const common = Math.min(known, commit);
    const expected = this.#committed[common]?.term ?? 0;
    require(view.holds(common, expected), 'state machine safety', () =>
      `${placeOf(view)} has committed index ${common} with term ${view.termAt(common)}, others with term ${expected}`);
    if (commit <= known) return false;
    for (let index = known + 1; index <= commit; index++) {
      this.#committed.push({ term: view.termAt(index) ?? 0, seenIn: term });
    }
    for (const election of this.#elections) if (election.term > term) this.#complete(election, commit);
    return true;
  }

  /**
   * A state machine has applied an entry. `checksum` identifies the result. Returns true if no replica had applied the
   * entry before.
   */
  applied(view: ReplicaView, entry: Entry, { checksum, conf }: { checksum: number; conf: ConfState }): boolean {
    const { index, term } = entry;
    require(index <= this.committedIndex && this.#committed[index]?.term === term, 'state machine safety', () =>
      `${placeOf(view)} applied (index ${index}, term ${term}), committed is term ${this.#committed[index]?.term}`);
    const known = this.#checksums[index];
    if (known !== undefined) {
      require(known === checksum, 'state machine safety', () =>
        `${placeOf(view)} differs from other replicas after index ${index}`);
      return false;
    }
    this.#checksums[index] = checksum;
    if (entry.type === 'conf') this.confs.push({ index, conf });
    return true;
  }

  /** A state machine installed a snapshot. */
  installed(view: ReplicaView, position: { index: number; term: number }, checksum: number): void {
    const same = this.#committed[position.index]?.term === position.term;
    require(same && this.#checksums[position.index] === checksum, 'state machine safety', () =>
      `${placeOf(view)} installed a snapshot of index ${position.index} that no replica had there`);
  }

  /** A leader must not accept a second membership change before it has applied the first one. */
  confProposed(view: ReplicaView, applied: number, conf: ConfState): void {
    const pending = view.confs.filter((index) => index > applied);
    require(pending.length <= 1, 'one pending membership change', () =>
      `${placeOf(view)} leads term ${view.term} with changes at ${pending.join(', ')} pending in ${JSON.stringify(conf)}`);
  }
}
