/**
 * All that is known of one group, over all its replicas: what was ever in a log, committed, applied, and who led.
 * Everything is checked as it happens, against this.
 */
import type { ConfState, Entry, GroupAppend, Role } from '@remora/raft';
import { require } from '../../common/violation.ts';
import { placeOf, type ReplicaView } from './replica-view.ts';

/** An entry as it was first seen in any log. */
interface KnownEntry {
  readonly prevTerm: number;
  readonly value: number;
  readonly type: Entry['type'];
}

interface Committed {
  readonly term: number;
  /** The term of the replica where it was first seen committed. */
  readonly seenIn: number;
}

interface Election {
  readonly term: number;
  readonly replicaId: number;
  /** The log that the leader began with. */
  readonly startIndex: number;
  readonly terms: readonly number[];
}

/** The number that a client wrote; 0 for entries without one. */
export function writtenValue({ type, data }: Entry): number {
  return type === 'normal' && data.length >= 4 ? leadingNumber(data) : 0;
}

/** Tells entries at one position apart: the number that a client wrote, or a sum over a membership change. */
function fingerprint(entry: Entry): number {
  if (entry.type === 'normal') return writtenValue(entry);
  return entry.data.reduce((sum, byte) => Math.imul(sum ^ byte, 0x01000193), entry.data.length);
}

function leadingNumber(data: Uint8Array): number {
  return (((data[0] ?? 0) << 24) | ((data[1] ?? 0) << 16) | ((data[2] ?? 0) << 8) | (data[3] ?? 0)) >>> 0;
}

const keyOf = (index: number, term: number): number => term * 2 ** 32 + index;

export class GroupTruth {
  readonly groupId: number;
  readonly #known = new Map<number, KnownEntry>();
  /** By index; [0] stands for the beginning. */
  readonly #committed: Committed[] = [{ term: 0, seenIn: 0 }];
  /** By index: the state machine's checksum after it. */
  readonly #checksums: number[] = [0];
  readonly #elections: Election[] = [];
  readonly #leaders = new Map<number, number>();
  /** Values of writes that were reported as lost. */
  readonly #dead = new Set<number>();
  /** Values that are applied. */
  readonly #values = new Set<number>();
  /** The memberships so far, and the index of the entry that made each. */
  readonly confs: { readonly index: number; readonly conf: ConfState }[];
  /** The highest index whose effect some client has seen. */
  visible = 0;

  constructor(groupId: number, conf: ConfState) {
    this.groupId = groupId;
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

  /** Before the view follows: what a replica hands out for persistence. */
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
    const value = fingerprint(entry);
    const known = this.#known.get(key);
    if (known === undefined) {
      this.#known.set(key, { prevTerm, value, type: entry.type });
      return;
    }
    const same = known.prevTerm === prevTerm && known.value === value && known.type === entry.type;
    require(same, 'log matching', () =>
      `${placeOf(view)}: (index ${entry.index}, term ${entry.term}) is value ${value} after term ${prevTerm} here, ` +
      `value ${known.value} after term ${known.prevTerm} elsewhere`);
  }

  /** What a replica knows to be committed is never replaced in its log. */
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

  // ------------------------------------------------------------------------------------------ commit and apply

  /** A replica says that its log is committed up to `commit`. True when that is news to all. */
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

  /** A state machine has applied an entry and has this checksum now. */
  applied(view: ReplicaView, entry: Entry, { checksum, conf }: { checksum: number; conf: ConfState }): void {
    const { index, term } = entry;
    require(index <= this.committedIndex && this.#committed[index]?.term === term, 'state machine safety', () =>
      `${placeOf(view)} applied (index ${index}, term ${term}), committed is term ${this.#committed[index]?.term}`);
    const value = writtenValue(entry);
    const known = this.#checksums[index];
    if (known !== undefined) {
      require(known === checksum, 'state machine safety', () =>
        `${placeOf(view)} differs from other replicas after index ${index}`);
      return;
    }
    this.#checksums[index] = checksum;
    if (entry.type === 'conf') this.confs.push({ index, conf });
    if (value === 0) return;
    require(!this.#dead.has(value), 'refused writes have no effect', () =>
      `${placeOf(view)} applied value ${value} at index ${index}, which had been reported as lost`);
    require(!this.#values.has(value), 'state machine safety', () => `value ${value} was applied twice`);
    this.#values.add(value);
  }

  /** A state machine took over a snapshot. */
  installed(view: ReplicaView, position: { index: number; term: number }, checksum: number): void {
    const same = this.#committed[position.index]?.term === position.term;
    require(same && this.#checksums[position.index] === checksum, 'state machine safety', () =>
      `${placeOf(view)} installed a snapshot of index ${position.index} that no replica had there`);
  }

  // ------------------------------------------------------------------------------------------ clients

  /** A write was acknowledged that began when `floor` was visible. */
  acknowledged(write: { readonly value: number; readonly index: number; readonly floor: number }): void {
    const { value, index, floor } = write;
    require(this.#values.has(value), 'linearizable writes', () => `value ${value} was acknowledged and not applied`);
    require(index > floor, 'linearizable writes', () =>
      `group ${this.groupId}: value ${value} at index ${index} began after index ${floor} was visible`);
    this.visible = Math.max(this.visible, index);
  }

  /** A client was told that its write will never have an effect. */
  lost(value: number): void {
    require(!this.#values.has(value), 'refused writes have no effect', () =>
      `group ${this.groupId}: value ${value} was reported as lost and is applied`);
    this.#dead.add(value);
  }

  /** A read that began when `floor` was visible was answered by the state at `index`. */
  read(answer: { readonly index: number; readonly floor: number; readonly how: string; readonly by: number }): void {
    const { index, floor, how, by } = answer;
    require(index >= floor, 'linearizable reads', () =>
      `group ${this.groupId}: replica ${by} answered a ${how} from index ${index}, and index ${floor} was visible before it began`);
    this.visible = Math.max(this.visible, index);
  }

  /** The membership of a leader does not take a second change before the first one is applied. */
  confProposed(view: ReplicaView, applied: number, conf: ConfState): void {
    const pending = view.confs.filter((index) => index > applied);
    require(pending.length <= 1, 'one pending membership change', () =>
      `${placeOf(view)} leads term ${view.term} with changes at ${pending.join(', ')} pending in ${JSON.stringify(conf)}`);
  }
}
