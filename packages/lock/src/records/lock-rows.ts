/**
 * The records of a lock during one command, in layers of one object: the head, the owners' rows and the sessions
 * (`lock-records.ts`: W1, W3, W4, W8), the holders (`lock-holds.ts`: W6, W7), and the waiters (`lock-queue.ts`: W2,
 * W5). This layer has what concerns all of them: the end of a session, and the end of the command.
 */
import { assert } from '@remora/base';
import { sameSession } from '../identity.ts';
import { LockQueue } from '../procedures/lock-queue.ts';
import type { Owner, SessionRef } from '../types.ts';
import type { Hold } from './records.ts';
import { decodeOwner } from './row-records.ts';

/** What a session had in the lock that has to be reported. */
export interface RemovedSession {
  /** In the order of their tokens. */
  readonly waiters: readonly Owner[];
  /** The owners that waited at the lock as a barrier. */
  readonly passing: readonly Owner[];
  readonly delayed: readonly Hold[];
}

export class LockRows extends LockQueue {
  /**
   * Removes what a session has in the lock, except holds that are delayed from now on.
   */
  removeSession(session: SessionRef): RemovedSession {
    const { hold } = this.headRecord;
    const waiters: Owner[] = [];
    const delayed: Hold[] = [];
    const passing = this.#removeBarrierWaiters(session);
    this.view.detach(session, this.names);
    if (hold !== undefined && sameSession(hold.holder.owner.session, session)) this.#vacateOrDelay(hold, delayed);
    if (this.hasNoOwners) return { waiters, passing, delayed };
    const upgrader = this.upgrader();
    if (upgrader !== undefined && sameSession(upgrader.owner.session, session)) {
      this.removeUpgrader();
      waiters.push(upgrader.owner);
    }
    const span = this.keys.session(session);
    for (const row of this.view.scan(span.start, span.end, 0)) {
      const owner = this.keys.ownerOf(row.key);
      const { sequence, mark, shareVersion } = decodeOwner(row.value);
      if (sequence !== 0) {
        this.dropWaiter(sequence);
        waiters.push(owner);
      }
      if (mark !== undefined) this.marks.drop(owner, mark.deadlineMs);
      if (sequence !== 0 || mark !== undefined) this.putOwner(owner, { sequence: 0, mark: undefined, shareVersion });
      if (shareVersion !== 0) this.#vacateOrDelay(this.share(owner, shareVersion), delayed);
    }
    return { waiters, passing, delayed };
  }

  /** Returns those that waited. */
  #removeBarrierWaiters(session: SessionRef): readonly Owner[] {
    if (!this.hasBarrierWaiters) return [];
    const { barrierWaiters } = this;
    const gone = barrierWaiters.ofSession(session, 0);
    for (const { owner } of gone) barrierWaiters.remove(owner);
    return gone.filter(({ passedVersion }) => passedVersion === 0).map(({ owner }) => owner);
  }

  /** Ends or delays a hold of a session that has ended. */
  #vacateOrDelay(hold: Hold, delayed: Hold[]): void {
    if (hold.delayed) return; // It has been reported before.
    if (hold.delayMs === 0) return this.vacate(hold, 'expired');
    const later: Hold = { ...hold, delayed: true };
    this.setHold(later);
    this.view.grantEnded?.(hold.holder.version);
    this.headRecord.delayed += 1;
    delayed.push(later);
  }

  /** Ends the command: checks the head (W2, W6) and writes it. */
  save(): void {
    const head = this.headRecord;
    assert(this.held || (head.waiters === 0 && head.passing === 0), 'W2: only a lock that is held has a queue');
    assert(head.sharers === 0 ? !head.upgrading : head.hold === undefined, 'W6: a lock is held alone or shared');
    if (head.waiters === 0) {
      head.firstSequence = 1;
      head.nextSequence = 1;
    }
    if (!this.held && !head.capacityIsSet && head.capacity > 0) this.setCapacity(0, false);
    if (head.revoking) this.endRevocation();
    this.write();
  }
}
