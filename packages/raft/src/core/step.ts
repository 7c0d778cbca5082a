/**
 * The effect of a message, by its term and its type.
 *
 * C1. A newer term is adopted, and a message of an older term is answered with the newer one (traps 4). Pre-votes
 *     change no term.
 */
import { unreachable } from '@remora/base';
import {
  handlePreVote,
  handlePreVoteResponse,
  handleTimeoutNow,
  handleVote,
  handleVoteResponse,
  learnCommit,
  refuse,
} from './election.ts';
import { handleAppend, handleHeartbeat, handleSnapshot } from './follower.ts';
import { handleAppendResponse, handleHeartbeatResponse } from './leader.ts';
import { becomeFollower } from './roles.ts';
import type { CoreState } from './state.ts';
import { type Message, NO_REPLICA } from './types.ts';

/** Takes in one message addressed to this replica. */
export function stepMessage(s: CoreState, m: Message): void {
  if ('committed' in m && m.committed !== undefined) learnCommit(s, m.committed);
  if (m.term > s.term) {
    if (!adoptTerm(s, m)) return;
  } else if (m.term < s.term) {
    answerStale(s, m);
    return;
  }
  dispatch(s, m);
}

/** Handles a message of a newer term. Returns false if it must be ignored. (C1) */
function adoptTerm(s: CoreState, m: Message): boolean {
  switch (m.type) {
    case 'preVote':
      return true;
    case 'preVoteResponse':
      if (m.reject) becomeFollower(s, m.term, NO_REPLICA);
      return true;
    case 'vote':
      if (!m.force && s.inLease) return false; // E3
      becomeFollower(s, m.term, NO_REPLICA);
      return true;
    case 'append':
    case 'heartbeat':
    case 'snapshot':
      becomeFollower(s, m.term, m.from);
      return true;
    default:
      becomeFollower(s, m.term, NO_REPLICA);
      return true;
  }
}

/** A message of an older term: candidates and leaders get the newer one; answers are dropped. (C1, E4) */
function answerStale(s: CoreState, m: Message): void {
  const to = { from: s.id, to: m.from, term: s.term } as const;
  switch (m.type) {
    case 'preVote':
    case 'vote':
      refuse(s, m);
      return;
    case 'append':
    case 'heartbeat':
    case 'snapshot':
      // Carries the term and claims nothing: no position was tried, so even a leader of this term learns nothing else
      // from it.
      s.send({ ...to, type: 'appendResponse', reject: true, index: 0, hintIndex: 0, hintTerm: 0, commit: s.commit });
      return;
    default:
      return;
  }
}

function dispatch(s: CoreState, m: Message): void {
  switch (m.type) {
    case 'append':
      return handleAppend(s, m);
    case 'appendResponse':
      return handleAppendResponse(s, m);
    case 'heartbeat':
      return handleHeartbeat(s, m);
    case 'heartbeatResponse':
      return handleHeartbeatResponse(s, m);
    case 'preVote':
      return handlePreVote(s, m);
    case 'preVoteResponse':
      return handlePreVoteResponse(s, m);
    case 'vote':
      return handleVote(s, m);
    case 'voteResponse':
      return handleVoteResponse(s, m);
    case 'snapshot':
      return handleSnapshot(s, m);
    case 'timeoutNow':
      return handleTimeoutNow(s, m);
    default:
      return unreachable(m);
  }
}
