/**
 * A group whose majority is lost for good goes on with one replica that is left.
 *
 * FC1. It makes itself the only member, by an entry behind everything that its log holds, in a term of its own that it
 *      votes for itself in: nobody else can lead in that term. All of the log before counts as committed with it: some of
 *      it may have been acknowledged by those that are lost.
 * FC2. The entry counts when it is durable here, not before. A crash until then leaves the group as it was, or with an
 *      entry more that nobody counts: it is made anew.
 * FC3. It is applied like any other change, wherever it stands in the log, from any configuration, joint ones too
 *      (conf-change.ts M5). Afterwards the replica is elected by its own vote, and everything is as ever.
 * FC4. This is safe only if those that are left out never go on by themselves: had they a majority, the group would be two.
 *      Nothing in here can know; whoever calls it does.
 */

import { appendOwn, becomeCandidate, becomeFollower } from '../roles.ts';
import type { CoreState } from '../state.ts';
import { type LogPosition, NO_REPLICA, type NotForced } from '../types.ts';
import { type ConfChange, forcedChange } from './conf-change.ts';
import { encodeConfChange } from './conf-change-codec.ts';
import { isMember } from './membership.ts';

/** FC1. Refused while a leader was heard lately, and where there is nothing to go on with. */
export function forceAlone(s: CoreState, context: ConfChange['context']): LogPosition | NotForced {
  const silentTicks = s.time.ticks - s.heardTick;
  if (s.role === 'leader' || silentTicks < 2 * s.config.electionTicks) return { refused: 'leaderHeard' };
  if (s.installing !== undefined || !isMember(s.conf, s.id)) return { refused: 'noData' };
  becomeCandidate(s); // FC1: the term, and the own vote in it
  const { index, term } = appendOwn(s, 'conf', encodeConfChange(forcedChange(s.id, context)));
  becomeFollower(s, term, NO_REPLICA);
  s.forcedAt = { index, term };
  return { index, term };
}

/** Something became durable. (FC2) */
export function commitForced(s: CoreState): void {
  const at = s.forcedAt;
  if (at === undefined || s.log.stableIndex < at.index) return;
  s.forcedAt = undefined;
  if (s.log.matches(at.index, at.term)) s.commitTo(at.index);
}
