/**
 * The follower's side of replication.
 *
 * F1. A follower sends an acknowledgement only after the fsync of the entries that it acknowledges and of the term
 *     (traps 8).
 * F2. The follower's commit index follows the leader's, but never passes the entries known to match the leader's log.
 * F3. While the host receives a snapshot, nothing is appended, acknowledged or handed out. Otherwise state and log
 *     would diverge.
 * F4. A replica without membership accepts no entries, only a snapshot (as an uninitialized peer in TiKV), because it
 *     has no configuration to which the changes in a log could apply. Its hint has a term at index 0, where no log has
 *     a term, and by this the leader recognizes it (leader.ts L6).
 */
import { setConf } from './membership/reconfigure.ts';
import { becomeFollower } from './roles.ts';
import type { CoreState } from './state.ts';
import { trace } from './trace.ts';
import type {
  AppendRequest,
  HeartbeatRequest,
  InstallSnapshot,
  LogPosition,
  ReplicaId,
  SnapshotMeta,
} from './types.ts';

/** A message of this term from its leader: there is only one, so stop campaigning and restart the wait. */
function followLeader(s: CoreState, leader: ReplicaId): void {
  if (s.role !== 'follower') becomeFollower(s, s.term, leader);
  s.leader = leader;
  s.heardLeader();
}

export function handleAppend(s: CoreState, m: AppendRequest): void {
  if (s.role === 'leader') return;
  followLeader(s, m.from);
  if (s.installing !== undefined) return; // F3
  const { log } = s;
  if (m.prevIndex < s.commit) {
    acknowledge(s, m.from, s.commit); // late or repeated: committed entries are equal everywhere
    return;
  }
  if (s.conf.voters.length === 0) return rejectAppend(s, m, { index: 0, term: s.term }); // F4
  if (!log.matches(m.prevIndex, m.prevTerm)) {
    return rejectAppend(s, m, log.findConflictByTerm(m.prevIndex, m.prevTerm));
  }
  log.accept(m.entries, s.commit);
  trace(s, 'accept');
  const last = m.prevIndex + m.entries.length;
  s.commitTo(Math.min(m.commit, last)); // F2
  acknowledge(s, m.from, last);
}

function rejectAppend(s: CoreState, m: AppendRequest, hint: LogPosition): void {
  s.send({
    type: 'appendResponse',
    from: s.id,
    to: m.from,
    term: s.term,
    reject: true,
    index: m.prevIndex,
    hintIndex: hint.index,
    hintTerm: hint.term,
    commit: s.commit,
  });
}

export function handleHeartbeat(s: CoreState, m: HeartbeatRequest): void {
  if (s.role === 'leader') return;
  followLeader(s, m.from);
  if (s.installing === undefined) s.commitTo(m.commit); // F3
  s.send({
    type: 'heartbeatResponse',
    from: s.id,
    to: m.from,
    term: s.term,
    commit: s.commit,
    readContext: m.readContext,
  });
}

/** The announcement of a snapshot; its data comes through the host, which asks `offerSnapshot`. */
export function handleSnapshot(s: CoreState, m: InstallSnapshot): void {
  if (s.role === 'leader') return;
  followLeader(s, m.from);
  if (s.installing === undefined) alreadyHeld(s, m.from, m.snapshot);
}

/** Whether the host should receive this snapshot (`RaftCore.acceptsSnapshot`). The term is current. */
export function offerSnapshot(s: CoreState, from: ReplicaId, meta: SnapshotMeta): boolean {
  if (s.role === 'leader') return false;
  followLeader(s, from);
  if (s.installing !== undefined || alreadyHeld(s, from, meta)) return false;
  s.installing = meta;
  return true;
}

/** Answers the leader when the log holds everything that the snapshot stands for. */
function alreadyHeld(s: CoreState, from: ReplicaId, meta: SnapshotMeta): boolean {
  if (s.log.matches(meta.index, meta.term)) s.commitTo(meta.index);
  if (meta.index > s.commit) return false;
  acknowledge(s, from, s.commit);
  return true;
}

/** The accepted snapshot is durable in the state machine: the log restarts after it. */
export function restartAtSnapshot(s: CoreState, meta: SnapshotMeta): void {
  s.installing = undefined;
  s.log.restart(meta);
  s.restartAt = meta;
  setConf(s, meta.conf);
  s.commit = meta.index;
  s.delivered = meta.index;
  s.applied = meta.index;
  s.applying.clear();
  s.entryReads.loaded = undefined;
  trace(s, 'restartAtSnapshot');
  if (s.leader !== 0 && s.leader !== s.id) acknowledge(s, s.leader, meta.index);
}

function acknowledge(s: CoreState, to: ReplicaId, index: number): void {
  s.sendDurable({
    type: 'appendResponse',
    from: s.id,
    to,
    term: s.term,
    reject: false,
    index,
    hintIndex: 0,
    hintTerm: 0,
    commit: s.commit,
  }); // F1
}
