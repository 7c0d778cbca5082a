/**
 * The leader's lease: for some time after the leader heard a quorum, no other leader can have been elected, so reads
 * need no round of messages (dissertation §6.4.1; design §4 ▸; traps 6, 7).
 *
 * E1. Basis. A follower's share of the lease counts from the *send* time of the newest heartbeat that it answered,
 *     because the follower made its promise later than that. The send time is taken before sending, never after.
 * E2. Promise. A replica that hears its leader refuses unforced votes and pre-votes, and does not campaign, for
 *     `electionTicks` of its own ticks (`CoreState.guardUntil`), whatever term it learns in the meantime. After a
 *     restart it makes the same promise from the start. Only the answer of a steady follower counts: it has the term on
 *     disk, so its restart is recognizable as one.
 * E3. Length. A follower's ticks may run ahead of the time since its promise: after a stall it makes up for up to
 *     `aheadTicksMax` ticks at once. The first tick may also follow at once, and timers round by half a tick at either
 *     end, which together cost one more tick. So the promise holds for (electionTicks − aheadTicksMax − 1) ticks of the
 *     follower's clock, reduced by the maximum difference between the rates of the two clocks (`leaseLengthMs`).
 * E4. Quorum. The followers heard, together with the leader, form a quorum of the current configuration (of both
 *     halves, if it is joint). Any two quorums of successive configurations share a voter, and that voter made the
 *     promise.
 * E5. Forced votes are not bound by the promise: once TimeoutNow is sent, there is no lease in that term, even if the
 *     transfer fails.
 * E6. Elapsed time is the larger of the times on the monotonic and the wall clock, because a suspended machine stops
 *     only the first. After a stall or a clock jump the host voids the lease: then only heartbeats sent later count.
 * E7. State. The leader must have applied an entry of its own term. A read under the lease waits until everything that
 *     was committed when the read arrived is applied. Then it may be answered, however late: its result was current
 *     when the read arrived.
 * E8. No follower ends its promise early. The end of the leader's process (election.ts E8) is only inferred from
 *     refused connections, which a firewall or a proxy can refuse too. So a host with leases does not report it.
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
  /** The largest difference between the rates of two clocks, in percent. */
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
