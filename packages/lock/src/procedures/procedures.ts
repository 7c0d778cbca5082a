/**
 * The lock procedures: what each command does to a lock (design §15). They are pure functions over `LockView`, which
 * apply calls on every replica. A command has been checked (`validateLockCommand`) and is within its deadline when it
 * gets here: apply refuses one that is past its deadline, by the range time that `LockView.timeMs` shows.
 *
 * Grants and the queue.
 *
 * L1. Either one owner holds a lock exclusively, or any number of owners share it. The holders of a semaphore together
 *     have at most as many permits as its capacity, unless the capacity was lowered meanwhile. The version of a grant
 *     is the revision of the command that granted it, and re-entries keep it. Revisions grow, so versions grow too,
 *     even if the lock is deleted in between and nothing of it is left in storage. Owners that one command grants the
 *     lock together have the same version.
 * L2. Waiters are granted the lock in the order in which they joined the queue, whatever they ask for: a waiter that
 *     does not fit holds up all waiters behind it. A command that makes room hands it over itself, so no wake-up can be
 *     lost (trap 21). A waiter whose session is dead or whose wait is over is removed and answered instead (traps 19,
 *     20). Where removing it would make room for others, that happens at the latest with the next command on the lock.
 * L3. Only an owner with a living session is granted the lock: an acquire checks that, and a hand-over checks it again
 *     (trap 19).
 * L4. A refused command changes nothing that others can see. It may clear marks that have ended, remove waiters whose
 *     time has passed, and leave a mark.
 * L5. While a name is held or waited for it is either a lock or a semaphore, and refuses to be used as the other. A
 *     semaphore whose capacity was set stays a semaphore. Exclusive and shared are two modes of one lock.
 * L6. No waiter wants more permits than the semaphore has, as it could never be granted them. An acquire that wants
 *     more is refused, and the command that lowers the capacity refuses such waiters.
 *
 * A hand-over, by L2 and L3. A holds the lock; B (shared), C (exclusive) and D (shared) wait in this order, and the
 * session of C is dead. `release` by A, applied at revision 90:
 *
 *   1. `vacate` ends A's grant: nobody holds the lock.
 *   2. B is first, its session lives and it fits: B is granted the lock shared, by version 90.
 *   3. C is next. Had its session been alive, it would not fit beside B, and D would have to wait behind it. As it is
 *      dead, C is removed and answered SESSION_EXPIRED.
 *   4. D fits beside B: D is granted the lock shared, by version 90 as well.
 *
 * Every replica does this in the one entry at 90, so there is no moment at which the lock is free and somebody waits
 * for it.
 *
 * Upgrades. An owner that shares a lock may ask to hold it exclusively without releasing it.
 *
 * U1. One upgrade waits at a time. Two would wait for each other forever, so the second one is refused at once.
 * U2. An upgrade comes before all waiters, as its owner holds the lock already, and nobody joins the other sharers
 *     meanwhile.
 * U3. Each conversion is a new grant with a new version. Readers that a downgrade lets in have the same version as its
 *     owner.
 * U4. Upgrades are numbered like acquires, and are not levels. An upgrade that arrives late, after it was given up or
 *     after a downgrade, changes nothing. Neither does a cancel or a downgrade that is meant for an earlier upgrade.
 *
 * Data. Each hold has data of its own, which others can see.
 *
 * D1. A hold that keeps its data starts with the data that were kept with the lock, unless it brings data. When it
 *     ends, in whatever way, its data replace the kept ones; if it has none, nothing is kept. So a holder that dies
 *     before it has set any data loses nothing of what earlier holders left.
 * D2. Only the owner of a hold changes its data or its depth, and names the version of the grant: a late command does
 *     not change a later grant, nor a grant that an upgrade has replaced.
 * D3. Other holds leave the kept data unchanged, and receive them with the grant. Kept data stay, even if nobody holds
 *     the lock, until they are replaced or forgotten.
 *
 * F1. A forced release is put on record if `by` or `reason` is given, until the next one or until it is forgotten. The
 *     record names the newest grant that it ended.
 *
 * Barriers. An owner that only waits for a lock to be free takes nothing from anybody, and is in no queue.
 *
 * B1. All owners that wait to pass do so together: in the entry after which nobody holds the lock, or at once if nobody
 *     does. The next waiter in the queue is granted the lock after that. A holder that asks to pass releases the lock
 *     in the same step. So when the last one leaves all of them pass, and none of them can enter again before the
 *     others have left.
 * B2. An owner that enters shares the lock at once, and waits until as many owners share it as it asked for. All that
 *     wait for this number, or a lower one, are released together, in the entry that grants the last share, whatever
 *     that share was asked for. A party counts from the moment it waits until it leaves.
 * B3. A waiter whose session is dead or whose wait is over does not count: it is evicted, with its share, before
 *     anybody passes. Neither does a delayed hold (T1) count.
 * B4. The passage of an owner is remembered until it confirms that (release, cancel), acquires or enters, or until its
 *     session ends. If it did not hear the answer and asks again, it gets the same answer, even if the lock is held
 *     again by then.
 * B5. Passing and entering are numbered, and end by cancel and release, as acquires do.
 * B6. While an owner waits to pass or to enter it does nothing else with the lock: it neither acquires nor upgrades nor
 *     downgrades, as any step that releases waiters may take its share (B3).
 *
 * A double barrier of three parties, by B2 and B3. A and B have entered; both share the lock and wait for 3. B's
 * session dies, which nobody has noticed yet. `enter` by C, applied at revision 70:
 *
 *   1. C is granted a share: three owners share the lock, as many as A and B wait for.
 *   2. Before anybody is released, the waiters are checked: B is evicted with its share, and answered SESSION_EXPIRED.
 *   3. Two owners share the lock now. Nobody is released, and A and C wait for a third party.
 *
 * Without step 2, A and C would begin without a third party.
 *
 * Lock-delay. The work under a lock may go on for a while after its session has ended, or after somebody ended the
 * session, without knowing it. A hold may ask that others wait that long.
 *
 * T1. When a session ends, for whatever reason, its holds that have a delay stay: they are *delayed*. They block others
 *     as before (permits stay taken, and other sharers may join a shared hold), and no longer belong to their owner:
 *     they are not current, and the owner neither releases nor changes them.
 * T2. A release or a cancel by the owner ends a hold without a delay.
 * T3. A delay is ended by a command that names the hold, or by force. The leader sends that command once the delay has
 *     passed by its monotonic clock, counted in full from the moment it applied the end of the session, or from the
 *     beginning of its leadership. So nobody is granted the lock early, whichever leader's command is applied.
 * T4. Once the end of a session has been reported, nothing belongs to it any more.
 *
 * Marks. An acquire that was canceled, or whose lock was released, may still be in flight (sent again by a gateway,
 * delayed by a network), and must not be granted afterwards. So cancel and release leave a mark for the owner, which
 * refuses such an acquire. The mark lives as long as one may be applied: until the latest deadline of those that were
 * sent before, which the command names.
 *
 * M1. If the client numbers its acquires (`attempt`), a mark refuses those up to the highest number that was ended. The
 *     next acquire has a higher one, so release → acquire works at once, with any deadlines. Numbers also tell a
 *     repeated acquire from a re-entry, and name the level that a cancel undoes. A release or cancel with a number
 *     below that of the grant is meant for an earlier grant, and leaves the present one alone.
 * M2. If the client does not number its acquires, a mark refuses acquires whose deadline is not after the mark's. Those
 *     sent before are refused, as the mark has the latest of their deadlines. A new one passes if its deadline is
 *     later, which holds while the owner uses one time limit throughout. In doubt the rule refuses, and never grants:
 *     an owner that varies its limits numbers its acquires, or takes a new token for each. Without numbers, an acquire
 *     that the holder repeats is a re-entry, and a cancel undoes one level.
 * M3. `deadlineMs: 0` on a release says that no acquire can be in flight any more: the usual case, when the first
 *     request was answered with the grant. Then no mark is left, and the release of an uncontended lock leaves nothing
 *     behind.
 * M4. Marks are removed when their end has passed, some by every command on the lock, and with their session. If no
 *     command comes, the leader sends one (`clearingOfMarks`). A lock keeps at most MARKS_MAX marks. Beyond that the
 *     mark that ends first is dropped: at worst an owner that gave up holds the lock until its session ends, while
 *     refusing marks would stop everybody.
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

/**
 * Applies one command. `notices` answer open calls of other owners, or tell a holder of its loss (after a forced
 * release).
 */
export function applyLockCommand(view: LockView, command: LockCommand): LockOutcome {
  const procedure = begin(view, command.lock);
  const { rows, notices } = procedure;
  rows.clearEndedMarks();
  const result = apply(procedure, command);
  rows.save();
  return { result, notices };
}

/**
 * Removes a session that has ended from one lock: its holds, except those that are delayed from now on, its waiters
 * (answered SESSION_EXPIRED) and its marks. Then hands over. Called for every lock that the session is attached to;
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

/** Holders keep their permits, so there may be more permits held than the capacity for a while. */
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
