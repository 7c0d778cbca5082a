/**
 * The output of a core: `Ready`.
 *
 * C2. Committed entries are handed out in order, each once.
 */
import { countApplying, nextCommitted, wantEntries, wantsApplyRead } from './entry-reads.ts';
import { sendAppends } from './leader.ts';
import { commitToPersist } from './membership/forced.ts';
import type { CoreState } from './state.ts';
import { type Entry, NO_REPLICA, type PersistMark, type Ready, type ReplicaId, type Role } from './types.ts';

const NO_ENTRIES: readonly Entry[] = [];

/** Builds the `Ready`s of one core. */
export class Readies {
  readonly #s: CoreState;
  #toldRole: Role = 'follower';
  #toldTerm: number;
  #toldLeader: ReplicaId = NO_REPLICA;

  /** `durableTerm` is the term that the host knows at the start. */
  constructor(s: CoreState, durableTerm: number) {
    this.#s = s;
    this.#toldTerm = durableTerm;
  }

  /** Whether `ready` has anything to hand out. */
  hasReady(): boolean {
    const s = this.#s;
    return (
      s.sendDirty ||
      s.outbox.length > 0 ||
      s.dirty ||
      this.#canDeliver() ||
      s.readStates.length > 0 ||
      s.readsDropped.length > 0 ||
      s.snapshotsWanted.length > 0 ||
      s.entryReads.wanted.length > 0 ||
      wantsApplyRead(s) ||
      this.#softChanged()
    );
  }

  /** Takes all pending work. Each item is handed out once. */
  take(): Ready {
    const s = this.#s;
    if (s.sendDirty) sendAppends(s);
    const { outbox: messages, readStates, readsDropped, snapshotsWanted } = s;
    if (messages.length > 0) s.outbox = [];
    if (readStates.length > 0) s.readStates = [];
    if (readsDropped.length > 0) s.readsDropped = [];
    if (snapshotsWanted.length > 0) s.snapshotsWanted = [];
    const persist = s.dirty ? this.#takePersist() : undefined;
    const soft = this.#softChanged() ? this.#takeSoft() : undefined;
    const committed = this.#canDeliver() ? this.#takeCommitted() : NO_ENTRIES;
    return {
      messages,
      committed,
      entriesWanted: this.#takeWanted(),
      readStates,
      readsDropped,
      snapshotsWanted,
      ...(persist === undefined ? undefined : { persist }),
      ...(soft === undefined ? undefined : { soft }),
    };
  }

  #takePersist(): NonNullable<Ready['persist']> {
    const s = this.#s;
    const mark: PersistMark = { sequence: s.gate.open() };
    const entries = s.log.openMark();
    // The commit index alone does not justify an fsync: it is written along with other changes.
    const commit = commitToPersist(s);
    const hard = s.hardDirty || commit !== s.persistedCommit;
    const snapshot = s.restartAt;
    s.hardDirty = false;
    s.persistedCommit = commit;
    s.restartAt = undefined;
    return {
      mark,
      entries,
      ...(hard ? { hardState: { term: s.term, vote: s.vote, commit } } : undefined),
      ...(snapshot === undefined ? undefined : { snapshot }),
    };
  }

  #canDeliver(): boolean {
    const s = this.#s;
    return (
      s.delivered < s.commit &&
      s.installing === undefined &&
      s.applying.bytes < s.config.maxApplyingBytes &&
      (s.delivered >= s.log.windowStart || s.entryReads.loaded !== undefined)
    );
  }

  #takeCommitted(): readonly Entry[] {
    const s = this.#s;
    const entries = nextCommitted(s);
    countApplying(s, entries);
    s.delivered += entries.length; // C2
    return entries;
  }

  #takeWanted(): Ready['entriesWanted'] {
    const s = this.#s;
    if (wantsApplyRead(s)) wantEntries(s, s.id, { from: s.delivered + 1, to: s.commit });
    const { wanted } = s.entryReads;
    if (wanted.length > 0) s.entryReads.wanted = [];
    return wanted;
  }

  #softChanged(): boolean {
    const s = this.#s;
    return s.role !== this.#toldRole || s.term !== this.#toldTerm || s.leader !== this.#toldLeader;
  }

  #takeSoft(): NonNullable<Ready['soft']> {
    const { role, term, leader } = this.#s;
    this.#toldRole = role;
    this.#toldTerm = term;
    this.#toldLeader = leader;
    return { role, term, leader };
  }
}
