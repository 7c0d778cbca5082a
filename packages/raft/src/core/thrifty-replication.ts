/**
 * Decides which followers get entries at once, and which a little later.
 *
 * A quorum commits. Sending an entry to further followers at the same time does not speed up the commit, but costs
 * network, time of the leader and, if nodes share a machine, its cores. So while entries arrive one after the other, a
 * leader sends them at once only to the fastest quorum, and to the other followers a little later, several entries
 * together ("thrifty" in Moraru et al., There Is More Consensus in Egalitarian Parliaments, SOSP 2013).
 *
 * T1. The leader relies on the quorum that committed the last trial. A trial consists of entries that went to all
 *     followers. One begins with the first entries after each heartbeat interval, so that the leader learns which
 *     followers are fast now. Another configuration has other quorums, so it begins without a quorum to rely on.
 * T2. Entries are delayed only if every follower of that quorum durably holds everything sent before. Nothing is
 *     delayed while more is in flight, while there is no such quorum, or during a leadership transfer. So a follower
 *     that falls silent delays at most one commit.
 * T3. Delayed entries leave when the next entries must not be delayed, and at the next tick at the latest. They leave
 *     sooner if the host, which reviews them at its own interval, finds that no entries have followed since its last
 *     review (these are the last for now), or that the entries of that review are not committed (a follower fell
 *     silent).
 * T4. Only few and small entries are delayed: a follower that lacks more gets all of them. Large batches carry many
 *     clients' requests or large values, and their cost does not depend on the number of frames.
 *
 * A delayed entry has simply not been sent yet: it is in the log and goes out like any entry that a follower lacks. So
 * a follower holds, acknowledges and votes for nothing that a slower network could not also bring about.
 */
import type { Progress } from './progress.ts';
import type { CoreState } from './state.ts';
import { NO_TRIAL, NOBODY } from './state-parts.ts';
import { NO_REPLICA, type ReplicaId } from './types.ts';

/** T4. */
const WAITING_ENTRIES_MAX = 64;
const WAITING_BYTES_MAX = 4 * 1024;

/** Entries are about to be sent: decides whether the new ones may be held back. */
export function decideWhoWaits(s: CoreState): void {
  const { thrift } = s;
  const { lastIndex } = s.log;
  const { released } = thrift;
  thrift.released = false;
  thrift.waiting = false;
  if (s.config.entriesMayWait !== true || lastIndex === thrift.decidedTo) return;
  if (s.time.ticks - thrift.trialTick >= s.config.heartbeatTicks) beginTrial(s);
  thrift.mayWait = !released && s.transferee === NO_REPLICA && isIdle(s); // T2
  thrift.decidedTo = lastIndex;
}

/** Whether the entries that `pr` lacks are held back; called once for each follower after `decideWhoWaits`. */
export function waits(s: CoreState, pr: Progress): boolean {
  const { thrift } = s;
  if (!thrift.mayWait || pr.state !== 'replicate' || thrift.countedOn.includes(pr.id)) return false;
  const lacks = s.log.lastIndex - pr.next + 1;
  if (lacks === 0) return true;
  if (lacks > WAITING_ENTRIES_MAX || s.log.bytesFrom(pr.next) > WAITING_BYTES_MAX) return false; // T4
  thrift.waiting = true;
  return true;
}

/** Something was committed: a trial may have ended (T1). */
export function concludeTrial(s: CoreState): void {
  const { thrift, conf } = s;
  if (s.commit < thrift.trialIndex) return;
  const holds = (id: ReplicaId) => s.matchOf(id) >= thrift.trialIndex;
  thrift.countedOn = [...new Set([...conf.voters, ...conf.votersOutgoing])].filter(holds);
  thrift.trialIndex = NO_TRIAL;
}

/** Entries held back go out with the next `Ready`. */
export function releaseWaiting(s: CoreState): void {
  const { thrift } = s;
  thrift.mayWait = false;
  if (!thrift.waiting) return;
  thrift.waiting = false;
  thrift.released = true;
  s.sendDirty = true;
}

/** The host reviews entries that are held back, at its own interval (T3). Returns false if none are any more. */
export function reviewWaiting(s: CoreState): boolean {
  const { thrift, log } = s;
  const isLate = s.commit < thrift.reviewedTo;
  const isLast = log.lastIndex === thrift.reviewedTo;
  thrift.reviewedTo = log.lastIndex;
  if (isLate || isLast) releaseWaiting(s);
  return thrift.waiting;
}

function beginTrial(s: CoreState): void {
  s.thrift.trialTick = s.time.ticks;
  s.thrift.trialIndex = s.log.lastIndex;
  s.thrift.countedOn = NOBODY;
}

/** Whether all followers of that quorum have everything sent before the new entries (T2). */
function isIdle(s: CoreState): boolean {
  const { countedOn, decidedTo } = s.thrift;
  const holdsAll = (id: ReplicaId) => s.matchOf(id) >= decidedTo && takesEntries(s, id);
  return countedOn.length > 0 && countedOn.every(holdsAll);
}

function takesEntries(s: CoreState, id: ReplicaId): boolean {
  return id === s.id || s.progress.get(id)?.state === 'replicate';
}
