/**
 * Transitions between roles.
 *
 *   follower      → preCandidate, candidate (forced, or without PreVote)
 *   preCandidate  → candidate, follower
 *   candidate     → leader, preCandidate, follower
 *   leader        → follower
 *   (a new group) → leader
 *
 * R1. The term never decreases. A replica votes once per term and forgets its vote only with the term.
 * R2. A leader first appends an empty entry: nothing older commits before it (dissertation §3.6.2, §6.4).
 * R3. A group may start with a leader. Then all its members start in the same term, above 0, at the same position, and
 *     with a vote for that leader in this term. Candidates raise the term, so nobody campaigns in it, and at most one
 *     replica leads in it: the one that its host names, once, before it has ever run. The creator of the group ensures
 *     this. After a restart that replica is a follower like any other.
 */
import { assert } from '@remora/base';
import { membersOf } from './membership/membership.ts';
import { Progress } from './progress.ts';
import type { CoreState } from './state.ts';
import { ThriftyReplication } from './state-parts.ts';
import { trace } from './trace.ts';
import { type Entry, NO_REPLICA, type ReplicaId } from './types.ts';

export function becomeFollower(s: CoreState, term: number, leader: ReplicaId): void {
  assert(term >= s.term, 'R1: the term never falls');
  if (s.role === 'leader') s.heardTick = s.time.ticks;
  reset(s, term);
  s.role = 'follower';
  s.leader = leader;
  trace(s, 'becomeFollower');
}

/** Asks the voters without raising the term: nothing durable changes (dissertation §9.6). */
export function becomePreCandidate(s: CoreState): void {
  s.votes.clear();
  s.role = 'preCandidate';
  s.leader = NO_REPLICA;
  s.resetElectionTimer();
  trace(s, 'becomePreCandidate');
}

export function becomeCandidate(s: CoreState): void {
  assert(s.role !== 'leader', 'a leader does not campaign');
  reset(s, s.term + 1);
  s.role = 'candidate';
  s.vote = s.id;
  trace(s, 'becomeCandidate');
}

export function becomeLeader(s: CoreState): void {
  assert(s.role === 'candidate', 'only a candidate becomes leader');
  lead(s);
}

/** A new group begins with this leader (R3), which contacts each member as soon as the member exists. */
export function beginUnder(s: CoreState, leader: ReplicaId): void {
  assert(s.term > 0 && s.vote === NO_REPLICA, 'R3: the members begin in a term in which nobody has voted otherwise');
  s.vote = leader;
  s.hardDirty = true;
  if (leader === s.id) return lead(s);
  s.leader = leader;
  s.heardLeader();
  s.send({ type: 'heartbeatResponse', from: s.id, to: leader, term: s.term, commit: s.commit, readContext: 0 });
}

function lead(s: CoreState): void {
  reset(s, s.term);
  s.role = 'leader';
  s.leader = s.id;
  s.confIndex = s.log.lastIndex; // Conservative: any of these may be a membership change that is not applied yet.
  syncProgress(s, false);
  trace(s, 'becomeLeader');
  appendOwn(s, 'normal', new Uint8Array(0)); // R2
}

/** Appends an entry as the leader; it goes out with the next `Ready`. */
export function appendOwn(s: CoreState, type: Entry['type'], data: Uint8Array): Entry {
  const entry: Entry = { index: s.log.lastIndex + 1, term: s.term, type, data };
  s.log.append(entry);
  s.sendDirty = true;
  trace(s, 'append');
  return entry;
}

/**
 * Updates the leader's list of followers after a change of the configuration. Members added later get time to answer.
 */
export function syncProgress(s: CoreState, added: boolean): void {
  const limits = { messages: s.config.maxInflightMessages, bytes: s.config.maxInflightBytes };
  const members = new Set(membersOf(s.conf));
  members.delete(s.id);
  for (const id of s.progress.keys()) {
    if (members.has(id)) continue;
    s.progress.delete(id);
    s.steadyVersion++;
  }
  for (const id of members) {
    const learner = !s.conf.voters.includes(id) && !s.conf.votersOutgoing.includes(id);
    const known = s.progress.get(id);
    if (known !== undefined) {
      known.learner = learner;
      continue;
    }
    const progress = new Progress(id, s.log.lastIndex + 1, learner, limits);
    progress.active = added;
    s.progress.set(id, progress);
  }
  s.peers = [...s.progress.values()];
}

function reset(s: CoreState, term: number): void {
  if (term !== s.term) {
    s.term = term;
    s.vote = NO_REPLICA;
    s.hardDirty = true;
  }
  s.leader = NO_REPLICA;
  s.resetElectionTimer();
  s.heartbeatSince = s.time.ticks;
  s.votes.clear();
  if (s.peers.length > 0) s.steadyVersion++;
  s.progress.clear();
  s.peers = [];
  s.leaderReady = false;
  s.uncommitted.clear();
  s.sendDirty = false;
  s.thrift = new ThriftyReplication();
  s.transferee = NO_REPLICA;
  s.handedOver = false;
  s.reads.drop(s.readsDropped);
  // A snapshot is reported to the leadership that wanted it or not at all; the next leadership asks again.
  s.snapshotsInFlight.clear();
  s.snapshotsWanted = [];
}
