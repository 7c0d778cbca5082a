/**
 * The leader's side: replication, commit, heartbeats, quorum check, leadership transfer.
 *
 * L1. The leader sends entries to followers before its own fsync (dissertation §10.2.1), and counts itself only up to
 *     what is durable (traps 8).
 * L2. Only entries of the current term commit by counting replicas; older entries commit with them (§3.6.2).
 * L3. A leader that hears no quorum for an election timeout steps down (§6.2; traps 5).
 * L4. After a lost message, an empty append at the next heartbeat interval resumes replication to the follower, whether
 *     or not the follower answers heartbeats. This covers its log, and its commit index, which merged heartbeats do not
 *     carry.
 * L5. The leader asks a transfer target that holds everything to campaign again at each heartbeat interval: the request
 *     may have been lost, and a target that has not yet applied its own promotion cannot follow it.
 * L6. A follower whose hint has a term at index 0 has no membership (follower.ts F4). It gets a snapshot, even if the
 *     log reaches back to the first entry.
 * L7. A follower learns the commit index with the next entries. If no entries follow, it learns it through L4, after up
 *     to two heartbeat intervals. When a caller waits until the follower has applied, `tellCommits` sends it at once.
 */
import { assert } from '@remora/base';
import { wantEntries } from './entry-reads.ts';
import { ENTRY_OVERHEAD_BYTES, entryBytes } from './log.ts';
import type { Progress } from './progress.ts';
import { isQuorum, quorumIndex } from './quorum.ts';
import { appendOwn, becomeFollower } from './roles.ts';
import type { CoreState } from './state.ts';
import { RoundTimes } from './state-parts.ts';
import { concludeTrial, decideWhoWaits, releaseWaiting, waits } from './thrifty-replication.ts';
import {
  type AppendResponse,
  type Entry,
  type HeartbeatResponse,
  type LogPosition,
  type Moment,
  NO_REPLICA,
  type Refused,
  type ReplicaId,
} from './types.ts';

const NO_ENTRIES: readonly Entry[] = [];

/** One tick of a leader. */
export function tickLeader(s: CoreState): void {
  releaseWaiting(s); // T3
  const { electionTicks, heartbeatTicks } = s.config;
  if (s.transferee !== NO_REPLICA && s.time.ticks - s.transferSince >= electionTicks) s.transferee = NO_REPLICA;
  if (s.time.ticks - s.electionSince >= electionTicks) {
    s.electionSince = s.time.ticks;
    if (s.checkQuorum && !isQuorum(s.conf, s.isActive)) {
      becomeFollower(s, s.term, NO_REPLICA); // L3
      return;
    }
    s.missesSome = false;
    for (const pr of s.peers) {
      if (!pr.active) s.missesSome = true;
      pr.activeBefore = pr.active;
      pr.active = false;
    }
  }
  const sinceBeat = s.time.ticks - s.heartbeatSince;
  if (sinceBeat >= heartbeatTicks) {
    // Intervals without work may have passed uncounted; their rhythm continues.
    s.heartbeatSince = s.time.ticks - (sinceBeat % heartbeatTicks);
    if (s.heartbeatSince === s.time.ticks) beat(s);
  }
}

/** The next tick at which a leader has something to do (S4). */
export function leaderDueTick(s: CoreState): number {
  const { electionTicks, heartbeatTicks } = s.config;
  const check = s.electionSince + electionTicks;
  if (isQuiet(s)) return check;
  const due = Math.min(s.heartbeatSince + heartbeatTicks, check);
  return s.transferee === NO_REPLICA ? due : Math.min(due, s.transferSince + electionTicks);
}

/** Whether the next beats, up to the next input, would send nothing and change nothing. */
function isQuiet(s: CoreState): boolean {
  if (s.reads.active || s.transferee !== NO_REPLICA) return false;
  const { lastIndex } = s.log;
  return s.peers.every(
    (pr) =>
      pr.merged &&
      pr.state === 'replicate' &&
      pr.match === lastIndex &&
      !pr.acked &&
      pr.commitTarget === s.commit &&
      pr.commit >= s.commit,
  );
}

/**
 * Sends heartbeats to followers whose heartbeats are not merged with other groups' (design §5), or to all while reads
 * need a round.
 */
function beat(s: CoreState): void {
  const toAll = s.reads.active;
  let round: number | undefined;
  const target = s.progress.get(s.transferee);
  if (target?.match === s.log.lastIndex) sendTimeoutNow(s, target.id); // L5
  for (const pr of s.peers) {
    if (toAll || !pr.merged) {
      round ??= toAll || s.config.leaseMs !== undefined ? beginRound(s) : 0;
      sendHeartbeat(s, pr, round);
    }
    if (needsStirring(pr)) sendEmptyAppend(s, pr); // L4
    pr.acked = false;
    pr.commitTarget = Math.min(pr.match, s.commit);
  }
}

/** L4: a whole interval has passed without the answer that would resume replication to this follower. */
function needsStirring(pr: Progress): boolean {
  if (pr.state === 'snapshot') return false;
  if (pr.state === 'probe') return pr.paused;
  return (!pr.acked && pr.match < pr.next - 1) || pr.commit < pr.commitTarget;
}

function sendHeartbeat(s: CoreState, pr: Progress, readContext: number): void {
  const commit = Math.min(pr.match, s.commit);
  s.send({ type: 'heartbeat', from: s.id, to: pr.id, term: s.term, commit, readContext });
}

/** Returns a number for the heartbeats that are sent now. */
function beginRound(s: CoreState): number {
  const round = ++s.reads.round;
  const { now } = s.time;
  if (now !== undefined && s.config.leaseMs !== undefined) {
    s.roundTimes ??= new RoundTimes();
    s.roundTimes.began(round, now);
  }
  return round;
}

/** Begins a ReadIndex round for all waiting reads, or confirms them here if the leader is its own quorum. */
export function startReads(s: CoreState): void {
  s.reads.begin(s.commit);
  const round = beginRound(s);
  for (const pr of s.peers) sendHeartbeat(s, pr, round);
  confirmReads(s);
}

export function confirmReads(s: CoreState): void {
  if (s.reads.active) s.reads.confirm(quorumIndex(s.conf, s.roundOf), s.readStates);
}

/**
 * Sends every follower the entries that it lacks, as far as the limits allow, except followers whose entries are held
 * back (thrifty-replication.ts). Called once per `Ready`, so that a turn's entries form a batch.
 */
export function sendAppends(s: CoreState): void {
  s.sendDirty = false;
  decideWhoWaits(s);
  for (const pr of s.peers) if (!waits(s, pr)) while (sendEntries(s, pr));
}

/** Sends one message of entries; returns false if there is nothing to send now. */
function sendEntries(s: CoreState, pr: Progress): boolean {
  if (pr.blocked || pr.next > s.log.lastIndex) {
    // A probe is sent even without entries: only its answer shows what the follower has.
    if (pr.state === 'probe' && !pr.paused) sendProbe(s, pr);
    return false;
  }
  const prevTerm = s.log.term(pr.next - 1);
  if (prevTerm === undefined) return wantSnapshot(s, pr);
  if (pr.next <= s.log.windowStart) {
    wantEntries(s, pr.id, { from: pr.next, to: s.log.lastIndex });
    return false;
  }
  sendRun(s, pr, prevTerm, s.log.slice(pr.next, s.log.lastIndex, s.config.maxEntryBytesPerMessage));
  return true;
}

/** Entries were read back for a follower. The next `Ready` decides what it needs by now. */
export function sendRead(s: CoreState, to: ReplicaId, entries: readonly Entry[]): void {
  if (s.role !== 'leader') return;
  s.sendDirty = true;
  const pr = s.progress.get(to);
  if (pr === undefined || pr.blocked || pr.next !== entries[0]?.index) return;
  const prevTerm = s.log.term(pr.next - 1);
  if (prevTerm !== undefined) sendRun(s, pr, prevTerm, entries);
}

function sendRun(s: CoreState, pr: Progress, prevTerm: number, entries: readonly Entry[]): void {
  sendAppend(s, pr, prevTerm, entries);
  let bytes = 0;
  for (const entry of entries) bytes += entryBytes(entry);
  pr.sent(pr.next + entries.length - 1, bytes);
}

function sendProbe(s: CoreState, pr: Progress): void {
  sendEmptyAppend(s, pr);
  if (pr.state === 'probe') pr.paused = true;
}

function sendEmptyAppend(s: CoreState, pr: Progress): void {
  const prevTerm = s.log.term(pr.next - 1);
  if (prevTerm === undefined) wantSnapshot(s, pr);
  else sendAppend(s, pr, prevTerm, NO_ENTRIES);
}

function sendAppend(s: CoreState, pr: Progress, prevTerm: number, entries: readonly Entry[]): void {
  s.send({
    type: 'append',
    from: s.id,
    to: pr.id,
    term: s.term,
    prevIndex: pr.next - 1,
    prevTerm,
    entries,
    commit: s.commit,
  });
}

/** The log no longer has the entries that the follower needs. A silent follower could not use a snapshot yet. */
function wantSnapshot(s: CoreState, pr: Progress): false {
  if (!pr.active) {
    pr.becomeProbe(pr.match + 1); // L4 resumes it
    pr.paused = true;
    return false;
  }
  pr.becomeSnapshot();
  if (!s.snapshotsInFlight.has(pr.id)) {
    s.snapshotsInFlight.add(pr.id);
    s.snapshotsWanted.push(pr.id);
  }
  return false;
}

export function handleAppendResponse(s: CoreState, m: AppendResponse): void {
  const pr = s.progress.get(m.from);
  if (s.role !== 'leader' || pr === undefined) return;
  pr.active = true;
  pr.commit = m.commit;
  if (m.reject) handleRejection(s, pr, m);
  else handleAcknowledgement(s, pr, m.index);
}

function handleRejection(s: CoreState, pr: Progress, m: AppendResponse): void {
  // The hint names a position of the follower's log; this log may have less of that term.
  const hint = m.hintTerm > 0 ? s.log.findConflictByTerm(m.hintIndex, m.hintTerm).index : m.hintIndex;
  if (!pr.reject(m.index, hint)) return;
  s.sendDirty = true;
  if (m.hintIndex === 0 && m.hintTerm > 0) wantSnapshot(s, pr); // L6
}

function handleAcknowledgement(s: CoreState, pr: Progress, index: number): void {
  assert(index <= s.log.lastIndex, 'P1: acknowledged past the end of the log');
  pr.acked = true;
  if (pr.steadyEpoch === 0 && index > 0) pr.steadyEpoch = ++s.steadyVersion;
  const news = pr.acknowledge(index);
  if (pr.state === 'probe' && pr.match === index) pr.becomeReplicate();
  else if (pr.state === 'snapshot' && pr.match >= s.log.startIndex) pr.becomeReplicate();
  if (pr.next <= s.log.lastIndex) s.sendDirty = true;
  if (!news) return;
  if (!pr.learner) maybeCommit(s);
  if (s.transferee === pr.id && pr.match === s.log.lastIndex) sendTimeoutNow(s, pr.id);
}

export function handleHeartbeatResponse(s: CoreState, m: HeartbeatResponse): void {
  const pr = s.progress.get(m.from);
  if (s.role !== 'leader' || pr === undefined) return;
  pr.active = true;
  pr.commit = Math.max(pr.commit, m.commit);
  if (pr.state === 'probe') {
    pr.paused = false;
    s.sendDirty = true;
  } else if (pr.state === 'replicate' && !pr.acked && pr.match < pr.next - 1) {
    sendEmptyAppend(s, pr); // perhaps lost: the answer frees the window or starts probing
    pr.acked = true; // once per interval is enough
  }
  const sent = pr.steadyEpoch > 0 ? s.roundTimes?.of(m.readContext) : undefined;
  if (sent !== undefined) pr.heard(sent); // lease.ts E1, E2
  if (m.readContext > pr.round) {
    pr.round = m.readContext;
    confirmReads(s);
  }
}

/** Appends one entry as the leader, or returns why not. It is sent with the next `Ready`. */
export function propose(s: CoreState, type: Entry['type'], data: Uint8Array): LogPosition | Refused {
  if (s.role !== 'leader') return { refused: 'notLeader' };
  if (s.transferee !== NO_REPLICA) return { refused: 'transferring' };
  const bytes = data.length + ENTRY_OVERHEAD_BYTES;
  // A single proposal is always accepted, however large: otherwise it could never be made.
  if (s.uncommitted.bytes > 0 && s.uncommitted.bytes + bytes > s.config.maxUncommittedBytes) {
    return { refused: 'queueFull' };
  }
  const { index, term } = appendOwn(s, type, data);
  s.uncommitted.add(index, bytes);
  return { index, term };
}

/** Commits what a quorum holds durably (L1, L2). */
export function maybeCommit(s: CoreState): void {
  const index = quorumIndex(s.conf, s.matchOf);
  if (index <= s.commit || s.log.term(index) !== s.term) return; // L2
  s.uncommitted.freeTo(index);
  s.commitTo(index);
  concludeTrial(s);
  s.leaderReady = true;
  if (s.reads.hasWaiting) startReads(s);
}

/** L7. */
export function tellCommits(s: CoreState): void {
  if (s.role !== 'leader') return;
  releaseWaiting(s);
  for (const pr of s.peers) if (pr.state === 'replicate' && pr.commit < s.commit) tellCommit(s, pr);
}

/** Sends the commit index, as far as the follower can use it. */
export function tellCommit(s: CoreState, pr: Progress): void {
  if (pr.state === 'replicate') sendEmptyAppend(s, pr);
  else sendHeartbeat(s, pr, 0);
}

export function transferLeader(s: CoreState, to: ReplicaId): Refused | undefined {
  if (s.role !== 'leader') return { refused: 'notLeader' };
  if (to === s.id || s.transferee === to) return undefined;
  if (s.transferee !== NO_REPLICA) return { refused: 'transferring' };
  const pr = s.progress.get(to);
  if (pr === undefined || !s.conf.voters.includes(to)) return { refused: 'notVoter' };
  s.transferee = to;
  s.transferSince = s.time.ticks;
  releaseWaiting(s);
  if (pr.match === s.log.lastIndex) sendTimeoutNow(s, to);
  else s.sendDirty = true;
  return undefined;
}

function sendTimeoutNow(s: CoreState, to: ReplicaId): void {
  s.handedOver = true; // lease.ts E5
  s.send({ type: 'timeoutNow', from: s.id, to, term: s.term });
}

export function reportUnreachable(s: CoreState, id: ReplicaId): void {
  const pr = s.progress.get(id);
  if (pr === undefined) return;
  endSteadiness(s, pr);
  pr.commit = 0;
  if (pr.state === 'replicate') {
    pr.becomeProbe(pr.match + 1);
    pr.paused = true; // until it is heard again
  }
}

/**
 * A merged heartbeat was answered that named this group and was sent in the period of steadiness `epoch`: the follower
 * follows (counts for CheckQuorum, and from `sent` on for the lease).
 */
export function heartbeatAnswered(s: CoreState, id: ReplicaId, epoch: number, sent: Moment | undefined): void {
  const pr = s.progress.get(id);
  if (pr === undefined || pr.steadyEpoch !== epoch) return;
  pr.active = true;
  if (sent !== undefined && s.config.leaseMs !== undefined) pr.heard(sent);
}

/** A merged heartbeat was refused: a full heartbeat is sent, whose answer contains everything. */
export function heartbeatRefused(s: CoreState, id: ReplicaId, epoch: number): void {
  const pr = s.progress.get(id);
  if (pr === undefined || pr.steadyEpoch !== epoch) return;
  reportUnreachable(s, id);
  sendHeartbeat(s, pr, 0);
}

function endSteadiness(s: CoreState, pr: Progress): void {
  pr.answered = undefined;
  if (pr.steadyEpoch === 0) return;
  pr.steadyEpoch = 0;
  pr.merged = false;
  s.steadyVersion++;
}

export function reportSnapshot(s: CoreState, id: ReplicaId, result: { ok: boolean; index: number }): void {
  s.snapshotsInFlight.delete(id);
  const pr = s.progress.get(id);
  if (pr === undefined || pr.state !== 'snapshot') return;
  pr.becomeProbe(result.ok ? result.index + 1 : pr.match + 1);
  pr.paused = true; // its acknowledgement, or the next heartbeat, resumes it
}
