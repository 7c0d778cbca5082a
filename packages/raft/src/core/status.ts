/** A picture of a replica for reports and decisions outside the core. */
import type { ProgressStatus, RaftStatus } from './config.ts';
import type { Progress } from './progress.ts';
import type { CoreState } from './state.ts';

export function statusOf(s: CoreState): RaftStatus {
  return {
    id: s.id,
    role: s.role,
    term: s.term,
    vote: s.vote,
    leader: s.leader,
    commit: s.commit,
    applied: s.applied,
    firstIndex: s.log.firstIndex,
    lastIndex: s.log.lastIndex,
    stableIndex: s.log.stableIndex,
    conf: s.conf,
    leaderReady: s.leaderReady,
    transferee: s.transferee,
    progress: s.peers.map((pr) => progressStatus(s, pr)),
  };
}

function progressStatus(s: CoreState, pr: Progress): ProgressStatus {
  return {
    replica: pr.id,
    learner: pr.learner,
    match: pr.match,
    commit: pr.commit,
    next: pr.next,
    state: pr.state,
    active: pr.active,
    steady: pr.steady,
    lagEntries: s.log.lastIndex - pr.match,
    lagBytes: s.log.bytesFrom(pr.match + 1),
  };
}
