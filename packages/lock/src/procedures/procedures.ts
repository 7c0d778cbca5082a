/**
 * The lock procedures: what each command does to a lock (design §15). Pure functions over `LockView`, called by
 * apply on every replica. Commands come in checked (`validateLockCommand`) and within their deadline: apply refuses
 * one that is past it, by the same range time that `LockView.timeMs` shows.
 *
 * L1. One owner holds a lock alone, or any number share it, or, of a semaphore, the permits of all together are at most
 *     its capacity, unless that was lowered meanwhile. The version of a grant is the revision of the command that
 *     granted, and stays the same over re-entries; as revisions grow, so do versions, over deletion and restart, with
 *     nothing left in storage. What one command grants to several has one version.
 * L2. Waiters are granted in the order in which they joined, whatever they ask for: who does not fit holds up all behind
 *     it. Whoever makes room passes it on in the same command, so no wake-up can be lost (trap 21). A waiter whose
 *     session is not alive or whose wait is over is removed instead, and answered (traps 19, 20). Where that would
 *     make room for others, it is done at the latest with the next command on the lock.
 * L3. A grant goes to a living session only: checked when acquiring and again when handing over (trap 19).
 * L4. A command that is refused changes nothing that others can see; it may clear ended marks, remove waiters whose time
 *     has passed, or leave a mark.
 * L5. While it is held or waited for a name is a lock or a semaphore, and refuses to be the other; a semaphore whose
 *     capacity was set stays one. Alone or shared are two ways to hold one lock.
 * L6. No waiter wants more permits than the semaphore has: it could never be granted them. An acquire that wants more is
 *     refused, and whoever lowers the capacity refuses those waiters in the same command.
 *
 * Upgrades. Who shares a lock may ask to have it alone without letting go.
 *
 * U1. One upgrade waits at a time: two would wait for one another for ever, so the second is refused at once.
 * U2. It comes before all who wait, as it holds the lock already, and nobody joins those who share it meanwhile.
 * U3. Each change of the way it is held is a new grant with a new version: who reads after a downgrade has the same
 *     version as those who are let in by it.
 * U4. Upgrades are numbered like acquires, and are no levels: one that comes late, after it was given up or after a
 *     downgrade, changes nothing, and neither does a cancel or a downgrade of an earlier one.
 *
 * Data. Each hold has data of its own, which others see.
 *
 * D1. A hold that keeps its data starts with what was kept with the lock, unless it brings data itself. When it ends, in
 *     whatever way, what it says is kept in the place of what was; if it says nothing, nothing is kept. A holder that
 *     dies before it has said anything thus loses nothing of what those before it left.
 * D2. Only the owner of a hold changes its data, or says how deep it is, and names the grant: what comes late does not
 *     change a later one, and a version below that of an upgrade is one of those.
 * D3. Other holds leave kept data as they are, and are told of them when they are granted. They stay, with nobody
 *     holding the lock too, until they are replaced or forgotten.
 *
 * F1. Who takes a lock by force, and why, stays on record if either is said, until that happens again or is forgotten. It
 *     names the newest grant that was ended.
 *
 * Barriers. Who only waits for a lock to be free takes nothing from anybody, and stands in no queue.
 *
 * B1. All who wait so pass together, in the entry after which nobody holds the lock, or at once if nobody does; whoever is
 *     next in the queue has it after that. Who holds it and wants to pass gives it back in the same step: the last of those
 *     who leave lets all of them go, and none of them can come in again before the others have left.
 * B2. Who enters shares the lock at once, and waits until as many share it as it waits for; all who wait for that many, or
 *     fewer, are let in together, in the entry that grants the last share, whatever that was asked for. It is counted from the moment that it waits, and stays until it leaves.
 * B3. Whoever's session is dead or whose wait is over is not counted: it is taken out, with its share, before anybody passes.
 *     Nor is one counted that is delayed (T1).
 * B4. That somebody has passed is kept until it says that it knows (release, cancel), acquires or enters, or its session ends: who
 *     did not hear the answer is told so again, though the lock may be held again by then.
 * B5. Both are numbered, and end by cancel and release as an acquire does.
 * B6. Who waits to pass or to enter does nothing else with the lock until that has ended: it neither acquires nor upgrades
 *     nor downgrades, as its share may be taken out by any step that lets others in (B3).
 *
 * Lock-delay. Who works under a lock may go on for a while after its session has ended, or be ended, without knowing. A
 * hold may ask that others wait for that.
 *
 * T1. When a session ends, however that is, those of its holds that have a delay stay: they are *delayed*. They keep
 *     others off as before (permits stay taken, who shares the lock is joined by others who do), and are their owners' no
 *     longer: not current, neither released nor changed by them.
 * T2. A release by the owner, or a cancel, ends a hold without a delay.
 * T3. The delay ends by a command that names the hold, or by force. The leader sends it once the delay has passed, by its
 *     monotonic clock, since it applied the end of the session, or since it began to lead, in full: so nobody is granted
 *     before, whichever leader it is whose command is applied.
 * T4. Nothing belongs to the session any more once its end has been told.
 *
 * Marks. A canceled or released acquire may still be under way (sent again by a gateway, delayed by a network), and
 * must not be granted afterwards. So cancel and release leave a mark for the owner, which refuses such an acquire,
 * and lives as long as one may be applied: until the latest deadline of those sent before, which the command names.
 *
 * M1. Where the client numbers its acquires (`attempt`), a mark refuses those up to the highest number that was
 *     ended. The next acquire has a higher one: release → acquire works at once, with any deadlines. Numbers also
 *     tell an acquire that is asked again from a re-entry, and name the level that a cancel undoes.
 *     A release or cancel below the number that was granted is one of an earlier grant that comes late: it leaves the
 *     present one alone.
 * M2. Where it does not, a mark refuses acquires whose deadline is not after the mark's. Those sent before are refused,
 *     as the mark's deadline is the latest of theirs; a new one passes if its deadline is later, as it is when an
 *     owner uses one time limit throughout. In doubt the rule refuses, never grants: an owner that varies its limits
 *     numbers its acquires or takes a new token for each. Without numbers, an acquire asked again by the holder is
 *     a re-entry, and a cancel undoes one level.
 * M3. `deadlineMs: 0` on a release says that no acquire can be under way any more, the usual case when the grant was
 *     answered to the first asking. No mark is left then, and the release of an uncontended lock leaves nothing.
 * M4. Marks go when their end has passed, some with every command on the lock, and with their session. Where no command
 *     comes, the leader sends one (`clearingOfMarks`). A lock keeps at most MARKS_MAX; beyond that the mark nearest to its
 *     end gives way: at worst a lock is held by an owner that gave up, until its session ends, while refusing would stop
 *     everyone.
 */
import { unreachable } from '@remora/base';
import { tellBarrierWaiter } from '../barrier/barrier-release.ts';
import type { LockView } from '../lock-view.ts';
import { LockRows } from '../records/lock-rows.ts';
import type { LockCommand, LockId, LockOutcome, LockResult, SessionEnd, SessionRef } from '../types.ts';
import { acquire } from './acquire.ts';
import { forget, setData, setDepth } from './data.ts';
import { delayedHold, endDelay } from './delay.ts';
import { handOver, refuseTooLarge } from './hand-over.ts';
import { notify, type Procedure, refused, SESSION_MESSAGE } from './procedure.ts';
import { cancel, forceRelease, release } from './release.ts';
import { revoke } from './revocation.ts';
import { downgrade } from './upgrade.ts';

/** Applies one command. `notices` answer open calls of others, or (a forced release) tell a holder of its loss. */
export function applyLockCommand(view: LockView, command: LockCommand): LockOutcome {
  const procedure = begin(view, command.lock);
  const { rows, notices } = procedure;
  rows.clearEndedMarks();
  const result = apply(procedure, command);
  rows.save();
  return { result, notices };
}

/**
 * Takes a session that has ended out of one lock: its holds, but for those that are delayed from now on, its waiters
 * (answered SESSION_EXPIRED) and its marks; and grants onward. Called for every lock that the session is attached to;
 * calling it again changes nothing.
 */
export function sessionEnded(view: LockView, session: SessionRef, lock: LockId): SessionEnd {
  const procedure = begin(view, lock);
  const { rows, notices } = procedure;
  const { waiters, passing, delayed } = rows.removeSession(session);
  for (const owner of passing) tellBarrierWaiter(procedure, { owner }, refused('SESSION_EXPIRED', SESSION_MESSAGE));
  for (const owner of waiters) {
    notify(procedure, owner, refused('SESSION_EXPIRED', SESSION_MESSAGE));
  }
  handOver(procedure);
  rows.save();
  return { notices, delayed: delayed.map((hold) => delayedHold(lock, hold)) };
}

function begin(view: LockView, lock: LockId): Procedure {
  return { view, lock, rows: new LockRows(view, lock), notices: [] };
}

function apply(procedure: Procedure, command: LockCommand): LockResult {
  switch (command.type) {
    case 'acquire':
      return acquire(procedure, command);
    case 'release':
      return release(procedure, command);
    case 'cancel':
      return cancel(procedure, command);
    case 'forceRelease':
      return forceRelease(procedure, command);
    case 'downgrade':
      return downgrade(procedure, command);
    case 'setCapacity':
      return setCapacity(procedure, command.capacity);
    case 'setData':
      return setData(procedure, command);
    case 'setDepth':
      return setDepth(procedure, command);
    case 'forget':
      return forget(procedure);
    case 'revoke':
      return revoke(procedure, command);
    case 'endDelay':
      return endDelay(procedure, command);
    default:
      return unreachable(command);
  }
}

/** Permits that are held stay with their holders: there may be more of them for a while than the capacity. */
function setCapacity(procedure: Procedure, capacity: number): LockResult {
  const { rows } = procedure;
  const { head } = rows;
  if (head.capacity === 0 && rows.held) {
    return refused('LOCK_KIND_MISMATCH', 'the name is in use as a lock, not as a semaphore');
  }
  const before = head.capacity;
  if (capacity > 0) rows.setCapacity(capacity, true);
  else rows.setCapacity(rows.held ? before : 0, false);
  if (head.capacity < before) refuseTooLarge(procedure);
  handOver(procedure);
  return { type: 'capacity', permits: head.permits, capacity: head.capacity };
}
