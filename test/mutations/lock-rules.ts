/**
 * Rules of locks, as ranges apply them, with a unit test that notices their violation: for each rule, a mutation that
 * breaks the code behind it.
 */
import type { RuleMutation } from './mutation.ts';

/** What holds leave behind, and barriers: the rules of packages/lock/src/procedures/procedures.ts. */
export const OF_LOCKS: readonly RuleMutation[] = [
  {
    name: 'limits-counted-as-one',
    rule: 'what a limit refuses is counted under that limit',
    file: 'packages/dataserver/src/range-metrics.ts',
    find: "session_locks: limits.labels('session_locks')",
    replace: "session_locks: limits.labels('sessions')",
    killedBy: {
      file: 'packages/dataserver/src/range-metrics.test.ts',
      test: 'what is refused as a limit was reached is counted by limit',
    },
  },
  {
    name: 'delay-not-waited-for',
    rule: 'a lock-delay ends before it has passed on the clock of the leader (lock-delays.ts LD1)',
    file: 'packages/dataserver/src/range/locks/lock-delays.ts',
    find: 'deadlineMs: this.#clock.monotonicMs() + hold.delayMs',
    replace: 'deadlineMs: this.#clock.monotonicMs()',
    killedBy: {
      file: 'packages/dataserver/src/range/locks/lock-delays.test.ts',
      test: 'lock-delays end by a proposal that names the hold, once the delay has passed, and once only',
    },
  },
  {
    name: 'token-shown-as-id',
    rule: 'what is shown of an owner releases what it holds (PO1, PO3)',
    file: 'packages/lock/src/public-owner.ts',
    find: "return createHash('sha256').update(DOMAIN).update(token).digest('base64url').slice(0, ID_LENGTH);",
    replace: 'return token;',
    killedBy: {
      file: 'test/http/locks.test.ts',
      test: 'a token is answered to the client that was granted the lock, and shown to nobody',
    },
  },
  {
    name: 'twice-in-the-queue-once-attached',
    rule: 'who has more than one thing in a lock is looked for before its session is let go of (W8)',
    file: 'packages/lock/src/records/lock-records.ts',
    find: 'this.#apart = this.#unattached || !this.view.isAttached(session, this.names); // W8',
    replace: '',
    killedBy: {
      file: 'packages/lock/src/procedures/procedures.test.ts',
      test: 'a session that waits twice keeps its place when one of the two has had its turn (W8)',
    },
  },
  {
    name: 'delayed-hold-is-still-its-owners',
    rule: 'who has lost its session does what it likes with a lock that is kept from others (T1)',
    file: 'packages/lock/src/procedures/lock-holds.ts',
    find: 'return hold?.delayed ? undefined : hold;',
    replace: 'return hold;',
    killedBy: {
      file: 'packages/lock/src/procedures/delay.test.ts',
      test: 'lock-delay leaves its owner nothing: the hold is not current, not released, and not changed by it',
    },
  },
  {
    name: 'kept-data-lost-by-who-says-nothing',
    rule: 'a holder that dies before it has said anything loses what was kept (D1)',
    file: 'packages/lock/src/procedures/lock-holds.ts',
    find: 'const data = keepData && request.data.length === 0 ? this.keptData : request.data; // D1',
    replace: 'const data = request.data;',
    killedBy: {
      file: 'packages/lock/src/procedures/data.test.ts',
      test: 'data that are kept are what the next hold that keeps data begins with, unless it brings its own',
    },
  },
  {
    name: 'the-gone-are-counted-at-a-barrier',
    rule: 'parties begin with one that has given up (B3)',
    file: 'packages/lock/src/barrier/barrier-release.ts',
    find: 'if (hasExpired(procedure, waiter)) evict(procedure, waiter);\n    else waiting.push(waiter);',
    replace: 'waiting.push(waiter);',
    killedBy: {
      file: 'packages/lock/src/barrier/barrier.test.ts',
      test: 'a double barrier counts nobody whose wait is over or whose session is dead (B3)',
    },
  },
  {
    name: 'who-enters-upgrades-meanwhile',
    rule: 'one who waits at a barrier asks for the lock alone, by a share that ends with its wait (B6)',
    file: 'packages/lock/src/procedures/acquire.ts',
    find: 'if (waiting !== undefined) return waiting;',
    replace: '',
    killedBy: {
      file: 'packages/lock/src/barrier/barrier.test.ts',
      test: 'a double barrier gives one who waits to enter nothing else meanwhile: no upgrade by a share that ends with its wait (B6)',
    },
  },
  {
    name: 'parties-wait-for-the-next-step',
    rule: 'a share that was asked for without entering completes parties, and lets nobody in until a later step (B2)',
    file: 'packages/lock/src/procedures/hand-over.ts',
    find: 'if (procedure.rows.head.parties > 0) releaseBarrierWaiters(procedure);',
    replace: '',
    killedBy: {
      file: 'packages/lock/src/barrier/barrier.test.ts',
      test: 'parties are complete by shares that are granted from the queue, at once (B2)',
    },
  },
  {
    name: 'too-large-a-wish-waits-for-its-turn',
    rule: 'a waiter that wants more permits than a lowered capacity waits for its turn to be refused (L6)',
    file: 'packages/lock/src/procedures/procedures.ts',
    find: 'if (head.capacity < before) refuseTooLarge(procedure);',
    replace: '',
    killedBy: {
      file: 'packages/lock/src/kinds.test.ts',
      test: 'who wants more than a lowered capacity is refused at once, wherever it stands, and those behind go on',
    },
  },
  {
    name: 'passage-not-remembered',
    rule: 'who did not hear that it passed waits again (B4)',
    file: 'packages/lock/src/barrier/barrier-release.ts',
    find: 'rows.barrierWaiters.put({ ...waiter, passedVersion: view.revision });',
    replace: 'rows.barrierWaiters.remove(owner);',
    killedBy: {
      file: 'packages/lock/src/barrier/barrier.test.ts',
      test: 'who waits for a lock to be free is told so again when it asks again, though the lock is held again, until it says that it knows (B4)',
    },
  },
];

const ALL_COMMANDS = {
  file: 'packages/lock/src/procedures/procedures.property.test.ts',
  test: 'lock: what commands do is what the rules say, and nothing is left in the end',
};

/** Events of locks, and requests to release them: packages/lock/src/procedures/events.ts and revocation.ts. */
export const OF_LISTENERS: readonly RuleMutation[] = [
  {
    name: 'holders-in-the-order-of-their-rows',
    rule: 'holders of one grant stand in another order in a state than in what events make of it (E1)',
    file: 'packages/lock/src/procedures/queries.ts',
    find: '\n    .sort(byGrant);',
    replace: ';',
    killedBy: ALL_COMMANDS,
  },
  {
    name: 'an-end-nobody-hears-of',
    rule: 'what a lock shows changes, and who listens is not told (E2)',
    file: 'packages/lock/src/procedures/lock-holds.ts',
    find: 'this.view.onEvent?.({ type: how, owner: publicOwner(owner), version, permits: hold.permits });',
    replace: '',
    killedBy: ALL_COMMANDS,
  },
  {
    name: 'left-out-for-good',
    rule: 'what is left out for a listener that is behind is never made good (LL1)',
    file: 'packages/dataserver/src/lock-watch/lock-listener.ts',
    find: 'this.#miss(start, news.lock);',
    replace: '',
    killedBy: {
      file: 'packages/dataserver/src/lock-watch/lock-listener.property.test.ts',
      test: 'whoever listens knows in the end what is, however far behind it was',
    },
  },
  {
    name: 'later-holders-are-asked-too',
    rule: 'a request to let go is of later grants as well (V1, V2)',
    file: 'packages/lock/src/procedures/lock-holds.ts',
    find: 'return holds.some((one) => !one.delayed && one.holder.version <= version);',
    replace: 'return holds.some((one) => !one.delayed);',
    killedBy: {
      file: 'packages/lock/src/procedures/revocation.test.ts',
      test: 'goes with the holder who was asked, and is not of the next one (V1)',
    },
  },
  {
    name: 'converted-holders-are-asked-no-more',
    rule: 'who is asked to let go gets rid of that by a downgrade (V3)',
    file: 'packages/lock/src/procedures/lock-holds.ts',
    find: 'if (this.headRecord.revoking) this.#askOn(hold.holder.version);',
    replace: '',
    killedBy: {
      file: 'packages/lock/src/procedures/revocation.test.ts',
      test: 'is of those who hold the lock in another way by now, as before (V3)',
    },
  },
];
