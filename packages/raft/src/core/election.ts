/**
 * Elections: PreVote, votes, leader stickiness, forced elections.
 *
 * E1. A candidate's vote requests and its own vote wait for the fsync of (term, vote), and so does every vote granted
 *     to another replica. So a crash can never make a replica vote twice in a term (dissertation §3.8; design §4).
 * E2. A replica votes only for a candidate whose log holds everything that the replica may have helped to commit
 *     (§3.6.1).
 * E3. A replica that hears its leader refuses to replace it, unless the leader itself asked for the election (§4.2.3,
 *     §3.10).
 * E4. A replica answers a stale request with the newer term and never drops it. Otherwise the sender would stay behind
 *     (traps 4).
 * E5. A replica that does not know of its own promotion still votes when asked: the candidate's configuration decides
 *     whose votes count. Only replicas that know themselves to be voters campaign.
 * E6. Vote requests and refusals carry the sender's commit index. Without it, a membership change known to one side
 *     only could keep the group electing forever: one replica has the longer log but is refused under the new
 *     configuration; the other would win under it but does not know that it is in force (etcd #12359, raft-rs #411).
 *     Committed entries stay committed, so this information may arrive late and is valid in every role and term.
 * E7. A replica that also hears no leader, and refuses a pre-vote only because its own log holds more, is the better
 *     candidate: it shortens the rest of its wait to a quarter. Otherwise a follower that lags (thrifty-replication.ts)
 *     would delay the election by campaigning first. The wait was drawn at random, so several replicas that refuse the
 *     same candidate rarely campaign together.
 * E8. Once the host knows that the leader's process is gone, its followers owe it nothing: their promise (E3) ends, and
 *     they campaign one after the other, so that usually the first one wins. Their order follows from the replica ids
 *     and the term, so the groups of a node elect different nodes. A wrong report can cost an election and nothing
 *     else: votes and commits rest on terms and quorums (dissertation §3.6), and only leases rest on the promise
 *     (lease.ts E8). One wrong follower elects nobody, because the others still refuse it (E3).
 * E9. A replica that starts as the only voter campaigns at its first tick, also after a restart: there is no leader
 *     that it could disturb. As long as it is the only voter, every entry needs its own durable log to be committed,
 *     the entry of a membership change too. So if its log holds no change beyond what is applied, then no change was
 *     ever committed: no other replica has a vote, none leads, and none holds a lease that a promise (E3) protects.
 *     Uncommitted changes in the log count as well, because the stored commit index may lag behind the true one.
 */
import { votersOf } from './membership/membership.ts';
import { voteResult } from './quorum.ts';
import { becomeCandidate, becomeFollower, becomeLeader, becomePreCandidate } from './roles.ts';
import type { CoreState } from './state.ts';
import { trace } from './trace.ts';
import {
  type LogPosition,
  NO_REPLICA,
  type PreVoteRequest,
  type PreVoteResponse,
  type TimeoutNow,
  type VoteRequest,
  type VoteResponse,
} from './types.ts';

/** One tick of a replica that does not lead. */
export function tickElection(s: CoreState): void {
  if (s.time.ticks - s.electionSince < s.electionTimeout) return;
  if (!s.promotable) return;
  if (s.config.admitsCampaign?.() === false) {
    s.electionSince = s.time.ticks - s.electionTimeout + s.config.heartbeatTicks; // repeats soon
    return;
  }
  trace(s, 'timeout');
  if (s.preVote) campaignPreVote(s);
  else campaign(s, false);
  s.hurryFirstElection();
}

/** Ticks between the campaigns of two followers of a leader that is gone: longer than a pre-vote and a vote take. */
const GONE_APART_TICKS = 2;

/** The host knows that the leader's process has ended. (E8) */
export function leaderGone(s: CoreState): void {
  if (s.role !== 'follower' || s.leader === NO_REPLICA) return;
  const others = votersOf(s.conf).filter((id) => id !== s.leader);
  const place = others.toSorted((a, b) => a - b).indexOf(s.id);
  const before = place < 0 ? others.length : (place + s.term) % others.length;
  s.releaseLeader(1 + before * GONE_APART_TICKS); // one tick for the others to learn of it too
}

function campaignPreVote(s: CoreState): void {
  becomePreCandidate(s);
  s.votes.set(s.id, true);
  for (const to of votersOf(s.conf)) {
    if (to === s.id) continue;
    const { lastIndex, lastTerm } = s.log;
    s.send({ type: 'preVote', from: s.id, to, term: s.term + 1, lastIndex, lastTerm, ...whatIsCommitted(s) });
  }
  settlePreVote(s);
}

function campaign(s: CoreState, force: boolean): void {
  becomeCandidate(s);
  const { lastIndex, lastTerm } = s.log;
  s.sendDurable({ type: 'voteResponse', from: s.id, to: s.id, term: s.term, reject: false }); // E1: the own vote
  for (const to of votersOf(s.conf)) {
    if (to === s.id) continue;
    s.sendDurable({ type: 'vote', from: s.id, to, term: s.term, lastIndex, lastTerm, force, ...whatIsCommitted(s) }); // E1
  }
}

export function handlePreVote(s: CoreState, m: PreVoteRequest): void {
  const free = m.term > s.term && !s.inLease;
  const grant = free && s.log.isUpToDate(m.lastIndex, m.lastTerm);
  // A grant names the requested term, a refusal the replica's own term, so that a sender that lags learns of it (E4).
  if (grant) s.send({ type: 'preVoteResponse', from: s.id, to: m.from, term: m.term, reject: false });
  else refuse(s, m);
  if (free && !grant) s.shortenElectionWait(); // E7
}

/** Refuses a (pre-)vote under the own term. (E4, E6) */
export function refuse(s: CoreState, m: PreVoteRequest | VoteRequest): void {
  const type = m.type === 'vote' ? 'voteResponse' : 'preVoteResponse';
  s.send({ type, from: s.id, to: m.from, term: s.term, reject: true, ...whatIsCommitted(s) });
}

function whatIsCommitted(s: CoreState): { readonly committed?: LogPosition } {
  const term = s.log.term(s.commit);
  return s.commit === 0 || term === undefined ? {} : { committed: { index: s.commit, term } };
}

/** Another replica knows this entry to be committed. (E6) */
export function learnCommit(s: CoreState, { index, term }: LogPosition): void {
  if (s.role === 'leader' || s.installing !== undefined || !s.log.matches(index, term)) return;
  s.commitTo(index);
  // The set of voters may be about to change.
  if (s.role !== 'follower' && !s.promotable) becomeFollower(s, s.term, NO_REPLICA);
}

export function handlePreVoteResponse(s: CoreState, m: PreVoteResponse): void {
  if (s.role !== 'preCandidate') return;
  if (m.term !== (m.reject ? s.term : s.term + 1)) return; // an answer to an earlier question
  recordVote(s, m.from, !m.reject);
  settlePreVote(s);
}

function settlePreVote(s: CoreState): void {
  const result = voteResult(s.conf, s.votes);
  if (result === 'won') campaign(s, false);
  else if (result === 'lost') becomeFollower(s, s.term, NO_REPLICA);
}

/** A request of this term: a newer one was adopted before, an older one answered. */
export function handleVote(s: CoreState, m: VoteRequest): void {
  const bound = s.inLease && !m.force; // E3: also if the term came from another replica than the candidate
  const free = !bound && (s.vote === m.from || (s.vote === NO_REPLICA && s.leader === NO_REPLICA));
  if (!free || !s.log.isUpToDate(m.lastIndex, m.lastTerm)) {
    refuse(s, m);
    return;
  }
  if (s.vote !== m.from) {
    s.vote = m.from;
    s.hardDirty = true;
    trace(s, 'vote');
  }
  s.electionSince = s.time.ticks;
  s.sendDurable({ type: 'voteResponse', from: s.id, to: m.from, term: s.term, reject: false }); // E1
}

export function handleVoteResponse(s: CoreState, m: VoteResponse): void {
  if (s.role !== 'candidate') return;
  recordVote(s, m.from, !m.reject);
  // E1: without its own durable vote a candidate does not lead, even if the others suffice.
  if (s.votes.get(s.id) !== true) return;
  const result = voteResult(s.conf, s.votes);
  if (result === 'won') becomeLeader(s);
  else if (result === 'lost') becomeFollower(s, s.term, NO_REPLICA);
}

/** The leader hands over: there is no pre-vote, and voters do not stick to the leader (dissertation §3.10). */
export function handleTimeoutNow(s: CoreState, m: TimeoutNow): void {
  if (s.role !== 'follower' || s.leader !== m.from || !s.promotable) return;
  campaign(s, true);
}

/** The first answer of each voter counts; a grant still replaces a refusal that came from an earlier question. */
function recordVote(s: CoreState, from: number, granted: boolean): void {
  if (s.votes.get(from) !== true) s.votes.set(from, granted);
}
