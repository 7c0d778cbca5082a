/**
 * Recovery of a group that has permanently lost its majority: one remaining replica continues alone.
 *
 * FC1. The replica makes itself the only member by an entry after everything in its log. It appends the entry in a new
 *      term in which it votes for itself, so no other replica can lead in that term. All earlier entries of the log
 *      commit with it, because some of them may have been acknowledged by the lost replicas.
 * FC2. The entry counts once it is durable here, not before. A crash before that leaves the group as it was; the
 *      recovery is then repeated. A commit index that includes the entry is in the same record of the log: a crash
 *      after the entry was applied, and its effect reported, must not leave an entry that needs the lost majority.
 * FC3. The entry is applied like any other change, wherever it stands in the log and from any configuration, including
 *      joint ones (conf-change.ts M5). Afterwards the replica elects itself and works as usual.
 * FC4. This is safe only if the excluded replicas never continue by themselves: if they had a majority, there would be
 *      two groups. The core cannot check this; its caller must ensure it.
 * FC5. A replica that is the only voter already has a quorum, and needs no force. This happens when the order is
 *      repeated between the entry's application and the replica's election.
 */

import { appendOwn, becomeCandidate, becomeFollower } from '../roles.ts';
import type { CoreState } from '../state.ts';
import { type LogPosition, NO_REPLICA, type NotForced } from '../types.ts';
import { type ConfChange, forcedChange } from './conf-change.ts';
import { encodeConfChange } from './conf-change-codec.ts';
import { isMember, isOnlyVoter } from './membership.ts';

/**
 * FC1. Refused while a leader was heard lately, if the replica has no data to continue from, and if it is alone already
 * (FC5).
 */
export function forceAlone(s: CoreState, context: ConfChange['context']): LogPosition | NotForced {
  const silentTicks = s.time.ticks - s.heardTick;
  if (s.role === 'leader' || silentTicks < 2 * s.config.electionTicks) return { refused: 'leaderHeard' };
  if (s.installing !== undefined || !isMember(s.conf, s.id)) return { refused: 'noData' };
  if (isOnlyVoter(s.conf, s.id)) return { refused: 'alone' }; // FC5
  becomeCandidate(s); // FC1: the term, and the own vote in it
  const { index, term } = appendOwn(s, 'conf', encodeConfChange(forcedChange(s.id, context)));
  becomeFollower(s, term, NO_REPLICA);
  s.forcedAt = { index, term };
  return { index, term };
}

/** The commit index to write with what is persisted now. (FC2) */
export function commitToPersist({ forcedAt, log, commit }: CoreState): number {
  if (forcedAt === undefined || !log.matches(forcedAt.index, forcedAt.term)) return commit;
  return Math.max(commit, forcedAt.index);
}

/** Something became durable. (FC2) */
export function commitForced(s: CoreState): void {
  const at = s.forcedAt;
  if (at === undefined || s.log.stableIndex < at.index) return;
  s.forcedAt = undefined;
  if (s.log.matches(at.index, at.term)) s.commitTo(at.index);
}
