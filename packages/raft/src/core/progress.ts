/**
 * The leader's view of one other replica (etcd-io/raft, tracker/progress.go).
 *
 * P1. `match` < `next`. Everything up to `match` is durable on the replica and equal to the leader's log.
 * P2. `probe`: at most one message with entries is in flight, and `next` is a guess. `replicate`: messages follow each
 *     other without waiting for answers, within the limits on messages and bytes in flight. `snapshot`: nothing is sent
 *     until the outcome of the snapshot is reported, or the replica turns out not to need it.
 *
 *     probe → replicate   an append is acknowledged
 *     replicate → probe   an append is rejected, or messages may have been lost
 *     any → snapshot      the next entry that the replica needs is compacted
 *     snapshot → probe    the outcome is reported; after an acknowledgement past the compacted part, then → replicate
 */
import { ByteMarks } from './byte-marks.ts';
import type { Moment, ProgressState, ReplicaId } from './types.ts';

export class Progress {
  readonly id: ReplicaId;
  learner: boolean;
  match = 0;
  next: number;
  state: ProgressState = 'probe';
  /** In `probe`: a message is in flight; wait for its answer or for the next heartbeat. */
  paused = false;
  /** Heard from since the last quorum check. */
  active = false;
  /** `active` as it was at that check: a replica that was heard then and not yet again is not silent. */
  activeBefore = false;
  /**
   * Above 0 while the replica is steady: it has acknowledged an append in this term, and nothing since indicates that
   * it may have stopped following. The number identifies this period of steadiness, over all terms of this process
   * (design §5).
   */
  steadyEpoch = 0;
  /** The host sends its heartbeats, merged with those of other groups; ends with the steadiness. */
  merged = false;
  /** The commit index that the replica last echoed, and the one that it should have echoed by the next heartbeat. */
  commit = 0;
  commitTarget = 0;
  /** Something was acknowledged since the last heartbeat interval: replication needs no resumption. */
  acked = false;
  /** The last ReadIndex round it answered. */
  round = 0;
  /** When the newest heartbeat was sent that it answered while steady (lease.ts E1). */
  answered: Moment | undefined;
  readonly #inflight = new ByteMarks();
  readonly #limits: { readonly messages: number; readonly bytes: number };

  constructor(id: ReplicaId, next: number, learner: boolean, limits: { messages: number; bytes: number }) {
    this.id = id;
    this.next = next;
    this.learner = learner;
    this.#limits = limits;
  }

  /** Whether the replica was heard from since the last quorum check or the one before. */
  get heardLately(): boolean {
    return this.active || this.activeBefore;
  }

  /** Whether no entries may be sent now (P2). */
  get blocked(): boolean {
    if (this.state === 'replicate') {
      return this.#inflight.count >= this.#limits.messages || this.#inflight.bytes >= this.#limits.bytes;
    }
    return this.state === 'snapshot' || this.paused;
  }

  /** A heartbeat sent at `sent` was answered. */
  heard(sent: Moment): void {
    if (this.answered === undefined || sent.monotonicMs > this.answered.monotonicMs) this.answered = sent;
  }

  becomeProbe(next: number): void {
    this.state = 'probe';
    this.paused = false;
    this.next = Math.max(this.match + 1, next);
    this.#inflight.clear();
  }

  becomeReplicate(): void {
    this.state = 'replicate';
    this.paused = false;
    this.next = this.match + 1;
    this.#inflight.clear();
  }

  becomeSnapshot(): void {
    this.state = 'snapshot';
    this.paused = false;
    this.#inflight.clear();
  }

  /** Entries up to `last` were sent. */
  sent(last: number, bytes: number): void {
    if (this.state === 'replicate') {
      this.next = last + 1;
      this.#inflight.add(last, bytes);
    } else {
      this.paused = true;
    }
  }

  /** Everything up to `index` is durable there. Returns true if that is new. */
  acknowledge(index: number): boolean {
    this.#inflight.freeTo(index);
    if (index <= this.match) return false;
    this.match = index;
    this.next = Math.max(this.next, index + 1);
    return true;
  }

  /**
   * The append after `rejected` did not match; it can match at `hint` at best. Returns false if the answer is to an
   * older message and contains nothing new.
   */
  reject(rejected: number, hint: number): boolean {
    if (this.state === 'replicate') {
      if (rejected <= this.match) return false;
      this.becomeProbe(Math.min(rejected, hint + 1));
      return true;
    }
    if (this.state !== 'probe' || this.next - 1 !== rejected) return false;
    this.next = Math.max(Math.min(rejected, hint + 1), this.match + 1);
    this.paused = false;
    return true;
  }
}
