/**
 * The leader's lease: for a while after a quorum was heard, no other leader can have been elected, so that reads need
 * no round (dissertation §6.4.1; design §4 ▸; traps 6, 7).
 *
 * E1. Basis. A follower's share of the lease counts from the *send* time of the newest heartbeat that it answered:
 *     whatever it promised, it promised later. Send times are taken before sending, never after.
 * E2. Promise. A replica that hears its leader refuses unforced votes and pre-votes, and does not campaign, for
 *     `electionTicks` of its own ticks (`CoreState.guardUntil`), whatever term it learns meanwhile; after a restart it
 *     does so from the start. Only a steady follower's answer counts: it has the term on disk, so its restart is
 *     known to be one.
 * E3. Length. Ticks may run ahead of the time since the promise: after a stall up to `aheadTicksMax` ticks are made up
 *     for at once; the first tick may follow at once, and rounding of timers is half a tick at either end, which makes
 *     one more. So the promise holds for (electionTicks − aheadTicksMax − 1) ticks of the follower's clock, and for
 *     that much less of the leader's by which the clocks' rates may differ (`leaseLengthMs`).
 * E4. Quorum. The followers heard, with the leader, are a quorum of the present configuration (both halves of a joint
 *     one). Configurations that follow each other share a voter in any two of their quorums, and that one promised.
 * E5. A forced vote is bound by no promise: from the moment that TimeoutNow is sent there is no lease in that term, even
 *     if the transfer fails.
 * E6. Elapsed time is the larger of what the monotonic and the wall clock say (a suspended machine stops the first
 *     only), and the host voids the lease after a stall or a jump: then only heartbeats sent later count.
 * E7. State. An entry of the own term must be applied, and work under the lease waits until what was committed when
 *     it came is applied; then it may be answered, however late: it was current when it was asked for.
 */
import { isQuorum } from './quorum.ts';
import type { CoreState } from './state.ts';
import type { Moment, ReplicaId } from './types.ts';

/** How long followers keep their promise, in milliseconds of the leader's clock (E3). 0: there is no lease. */
export function leaseLengthMs(given: {
  readonly electionTicks: number;
  readonly tickMs: number;
  /** Ticks that a follower may make up for at once. */
  readonly aheadTicksMax: number;
  /** By how much the rates of two clocks may differ, in percent. */
  readonly driftPercent: number;
}): number {
  const ticks = Math.max(0, given.electionTicks - given.aheadTicksMax - 1);
  return Math.floor(ticks * given.tickMs * (1 - given.driftPercent / 100));
}

/** Whether the lease holds at `now`, which was read just before. */
export function leaseHolds(s: CoreState, now: Moment): boolean {
  const length = s.config.leaseMs ?? 0;
  if (length <= 0 || s.role !== 'leader' || !s.checkQuorum || s.handedOver) return false; // E5
  if (s.log.term(s.applied) !== s.term) return false; // E7
  const heard = (id: ReplicaId): boolean => {
    if (id === s.id) return true;
    const sent = s.progress.get(id)?.answered;
    if (sent === undefined || sent.monotonicMs <= s.leaseVoidMs) return false; // E6
    return Math.max(now.monotonicMs - sent.monotonicMs, now.wallMs - sent.wallMs) < length; // E1, E6
  };
  return isQuorum(s.conf, heard); // E4
}
