/**
 * Membership changes in progress.
 *
 * N1. There is one change at a time: the leader appends no other until it has applied the last change in its log, and
 *     none before an entry of its own term is committed (dissertation §4.1 with its correction; traps 1, 2). So a log
 *     that holds a change knows every earlier change as committed: the commit index travels, and becomes durable, with
 *     it.
 * N2. A change takes effect when it is applied. By then a majority of the old configuration holds it, so the winner of
 *     an election under an older configuration holds it too. No replica campaigns while it knows of a committed change
 *     that it has not applied (etcd #7625).
 * N3. A joint configuration that is left automatically is left by the leader that has applied it. The leader appends
 *     the leave outside the limits on proposals. During a leadership transfer the leave waits, because the target could
 *     not win with it.
 * N4. A leader that is no longer a voter steps down. The leader tells replicas that a change separates from it once
 *     more what is committed: a follower that does not know might wait for votes of replicas that are gone.
 */

import { confirmReads, maybeCommit, propose, tellCommit } from '../leader.ts';
import { appendOwn, becomeFollower, syncProgress } from '../roles.ts';
import type { CoreState } from '../state.ts';
import { trace } from '../trace.ts';
import { type ConfState, type LogPosition, NO_REPLICA, type Refused } from '../types.ts';
import { type ConfChange, changeConf, LEAVE_JOINT } from './conf-change.ts';
import { encodeConfChange } from './conf-change-codec.ts';
import { isJoint, isMember, isVoter } from './membership.ts';

/** Appends a membership change as the leader, or returns why not. (N1) */
export function proposeConf(s: CoreState, change: ConfChange): LogPosition | Refused {
  if (s.role !== 'leader') return { refused: 'notLeader' };
  if (!s.leaderReady) return { refused: 'noOwnTermCommit' };
  if (s.confIndex > s.applied) return { refused: 'confPending' };
  if (change.transition === 'forced') return { refused: 'confInvalid', problem: 'forced' };
  const next = changeConf(s.conf, change);
  if ('invalid' in next) return { refused: 'confInvalid', problem: next.invalid };
  const result = propose(s, 'conf', encodeConfChange(change));
  if (!('refused' in result)) s.confIndex = result.index;
  return result;
}

/** From now on this is the configuration: its entry has been applied. (N2) */
export function applyConf(s: CoreState, conf: ConfState): void {
  setConf(s, conf);
  trace(s, 'applyConf');
  if (s.role !== 'leader') return;
  const stays = isVoter(conf, s.id);
  for (const pr of s.peers) if (!stays || !isMember(conf, pr.id)) tellCommit(s, pr); // N4
  if (!stays) {
    becomeFollower(s, s.term, NO_REPLICA);
    return;
  }
  syncProgress(s, true);
  if (!conf.voters.includes(s.transferee)) s.transferee = NO_REPLICA;
  s.thrift.forget(); // T1
  maybeCommit(s); // the quorum may be smaller now
  confirmReads(s);
  s.sendDirty = true;
}

/** Adopts a configuration. A snapshot in progress to a replica that is no longer a member is forgotten. */
export function setConf(s: CoreState, conf: ConfState): void {
  s.conf = conf;
  for (const id of s.snapshotsInFlight) if (!isMember(conf, id)) s.snapshotsInFlight.delete(id);
  s.snapshotsWanted = s.snapshotsWanted.filter((id) => isMember(conf, id));
}

/** Appends the automatic leave once the joint configuration is applied. (N3) */
export function leaveJointWhenDue(s: CoreState): void {
  if (s.role !== 'leader' || !s.leaderReady || !isJoint(s.conf) || !s.conf.autoLeave) return;
  if (s.confIndex > s.applied || s.transferee !== NO_REPLICA) return;
  const entry = appendOwn(s, 'conf', encodeConfChange(LEAVE_JOINT));
  s.confIndex = entry.index;
}
