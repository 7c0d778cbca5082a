/**
 * Which followers get entries at once, and which a little later.
 *
 * A quorum commits. What the other followers do with an entry at the same time adds nothing to that, and takes the
 * network, the leader and, where nodes share a machine, its cores. So while entries come one after the other, a leader
 * sends them at once only to the quorum that is fastest, and to the others a little later, several together ("thrifty"
 * in Moraru et al., There Is More Consensus in Egalitarian Parliaments, SOSP 2013).
 *
 * T1. Counted on is the quorum that committed the last trial: entries that went to all. There is a trial at the first
 *     entries after each heartbeat interval, so that the leader learns who is fast by now. Another configuration has
 *     other quorums: it begins with nobody counted on.
 * T2. Entries wait only if everybody who is counted on holds durably all that was sent before. Nobody waits while more
 *     than that is under way, while nobody is counted on, or while leadership is handed over. So whoever falls silent is
 *     counted on in vain once.
 * T3. Waiting entries leave when the next ones must not wait, and at the next tick at the latest. Sooner when the host,
 *     which looks at them at an interval of its own, finds that since it last looked nothing has come behind them, or
 *     that what was there then is not committed: they are the last for now, or somebody is counted on in vain.
 * T4. Only few and small entries wait: who lacks more than that gets what there is. Large ones hold what many clients want at
 *     once, or large values; they cost what they cost, however few frames they come in.
 *
 * What waits has simply not been sent: it is in the log, and goes out as any entry that a follower lacks. So nothing
 * that a follower holds, acknowledges or votes for is different from what a slower network would bring about.
 */
import type { Progress } from './progress.ts';
import type { CoreState } from './state.ts';
import { NO_TRIAL, NOBODY } from './state-parts.ts';
import { NO_REPLICA, type ReplicaId } from './types.ts';

/** T4. */
const WAITING_ENTRIES_MAX = 64;
const WAITING_BYTES_MAX = 4 * 1024;

/** Entries are about to be sent: decides whether those that are new may wait. */
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

/** Whether the entries that `pr` lacks wait; asked once for each follower after `decideWhoWaits`. */
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

/** What waits goes out with the next `Ready`. */
export function releaseWaiting(s: CoreState): void {
  const { thrift } = s;
  thrift.mayWait = false;
  if (!thrift.waiting) return;
  thrift.waiting = false;
  thrift.released = true;
  s.sendDirty = true;
}

/** The host looks at what waits, at an interval of its own (T3). False if nothing waits any more. */
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

/** Whether all who are counted on hold what was sent before the entries that come now (T2). */
function isIdle(s: CoreState): boolean {
  const { countedOn, decidedTo } = s.thrift;
  const holdsAll = (id: ReplicaId) => s.matchOf(id) >= decidedTo && takesEntries(s, id);
  return countedOn.length > 0 && countedOn.every(holdsAll);
}

function takesEntries(s: CoreState, id: ReplicaId): boolean {
  return id === s.id || s.progress.get(id)?.state === 'replicate';
}
