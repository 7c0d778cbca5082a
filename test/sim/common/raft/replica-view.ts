/**
 * What the checks know about one replica: its log as it was handed out for persistence, and its last observed state.
 */
import type { ConfState, GroupAppend, LogPosition, Role } from '@remora/raft';

export class ReplicaView {
  readonly groupId: number;
  readonly replicaId: number;
  readonly nodeId: number;
  start: LogPosition = { index: 0, term: 0 };
  /** The terms of the entries from `start.index + 1`. */
  terms: number[] = [];
  /** Indexes of membership changes in the log. */
  confs: number[] = [];
  role: Role = 'follower';
  term = 0;
  commit = 0;
  applied = 0;
  conf: ConfState;
  /** The highest term that was ever observed, over all lives. */
  termMax = 0;
  /** Its last vote: the candidate and the term, over all lives. */
  vote: { readonly term: number; readonly candidate: number } = { term: 0, candidate: 0 };

  constructor(place: { groupId: number; replicaId: number; nodeId: number }, conf: ConfState) {
    this.groupId = place.groupId;
    this.replicaId = place.replicaId;
    this.nodeId = place.nodeId;
    this.conf = conf;
  }

  get last(): number {
    return this.start.index + this.terms.length;
  }

  termAt(index: number): number | undefined {
    if (index === this.start.index) return this.start.term;
    return this.terms[index - this.start.index - 1];
  }

  /** Whether the log holds this entry, or begins after it. */
  holds(index: number, term: number): boolean {
    return index <= this.start.index || this.termAt(index) === term;
  }

  /** A life begins with what was found on disk. */
  begin(found: { start: LogPosition; terms: number[]; confs: number[]; applied: number; conf: ConfState }): void {
    this.start = found.start;
    this.terms = found.terms;
    this.confs = found.confs;
    this.role = 'follower';
    this.term = 0;
    this.commit = 0;
    this.applied = found.applied;
    this.conf = found.conf;
  }

  follow(append: GroupAppend): void {
    if (append.restartAt !== undefined) {
      this.start = append.restartAt;
      this.terms = [];
      this.confs = [];
    }
    const first = append.entries[0];
    if (first === undefined) return;
    this.terms.length = first.index - this.start.index - 1;
    if (this.confs.length > 0) this.confs = this.confs.filter((index) => index < first.index);
    for (const entry of append.entries) {
      this.terms.push(entry.term);
      if (entry.type === 'conf') this.confs.push(entry.index);
    }
  }
}

export function placeOf(view: ReplicaView): string {
  return `group ${view.groupId}, replica ${view.replicaId} on node ${view.nodeId}`;
}
