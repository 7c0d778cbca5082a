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
    lastTerm: s.log.lastTerm,
    silentTicks: s.role === 'leader' ? 0 : s.time.ticks - s.heardTick,
    stableIndex: s.log.stableIndex,
    conf: s.conf,
    leaderReady: s.leaderReady,
    transferee: s.transferee,
    changePending: s.role === 'leader' && s.confIndex > s.applied,
    progress: s.peers.map((pr) => progressStatus(s, pr)),
  };
}

/** Defaults of `RaftConfig.caughtUpEntries` and `caughtUpPercent` (design §4). */
const CAUGHT_UP_ENTRIES = 500;
const CAUGHT_UP_PERCENT = 5;

/**
 * Measured, not guessed (traps 3): a replica that was never heard from, that needs a snapshot, or whose
 * acknowledgements are old, only seems to lag little.
 */
function isCaughtUp(s: CoreState, pr: Progress): boolean {
  if (pr.state !== 'replicate' || !pr.heardLately) return false;
  const { caughtUpEntries = CAUGHT_UP_ENTRIES, caughtUpPercent = CAUGHT_UP_PERCENT } = s.config;
  const lag = s.log.lastIndex - pr.match;
  return lag < caughtUpEntries || lag * 100 < caughtUpPercent * (s.log.lastIndex - s.log.startIndex);
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
    heardLately: pr.heardLately,
    steady: pr.steadyEpoch > 0,
    lagEntries: s.log.lastIndex - pr.match,
    lagBytes: s.log.bytesFrom(pr.match + 1),
    caughtUp: isCaughtUp(s, pr),
  };
}
