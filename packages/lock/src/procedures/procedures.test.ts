import { utf8 } from '@remora/base';
import { beforeEach, describe, expect, it } from 'vitest';
import { MemoryView } from '../../test/memory-view.ts';
import {
  applyLockCommand,
  clearingOfMarks,
  firstMark,
  type LockCommand,
  type LockId,
  type LockNotice,
  type LockOutcome,
  type LockState,
  markOfRow,
  type Owner,
  publicOwner,
  queryLocks,
  type SessionRef,
  sessionEnded,
  validateLockCommand,
  WAITERS_MAX,
} from '../index.ts';

const LOCK: LockId = { namespace: 'default', name: utf8('orders/42') };
const S1: SessionRef = { lease: 1n, incarnation: 7 };
const S2: SessionRef = { lease: 2n, incarnation: 8 };
const S3: SessionRef = { lease: 3n, incarnation: 9 };
const A: Owner = { session: S1, token: 'a' };
const B: Owner = { session: S2, token: 'b' };
const C: Owner = { session: S3, token: 'c' };

let view: MemoryView;

beforeEach(() => {
  view = new MemoryView();
  for (const session of [S1, S2, S3]) view.begin(session);
});

function apply(command: LockCommand): LockOutcome {
  view.revision += 1;
  return applyLockCommand(view, command);
}

type Extra<T extends LockCommand['type']> = Partial<Extract<LockCommand, { readonly type: T }>>;

function acquire(owner: Owner, extra: Extra<'acquire'> = {}): LockOutcome {
  const limits = { wait: true, waitUntilMs: 0, deadlineMs: view.timeMs + 5_000, depthMax: 3 };
  return apply({ type: 'acquire', lock: LOCK, owner, ...limits, data: utf8(''), ...extra });
}

function release(owner: Owner, extra: Extra<'release'> = {}): LockOutcome {
  return apply({ type: 'release', lock: LOCK, owner, all: false, deadlineMs: 0, ...extra });
}

function cancel(owner: Owner, extra: Extra<'cancel'> = {}): LockOutcome {
  return apply({ type: 'cancel', lock: LOCK, owner, deadlineMs: view.timeMs + 5_000, ...extra });
}

function end(session: SessionRef): readonly LockNotice[] {
  view.revision += 1;
  view.end(session);
  return view.attachedLocks(session).flatMap((lock) => sessionEnded(view, session, lock).notices);
}

function state(): LockState | undefined {
  const shown = queryLocks(view, { type: 'show', lock: LOCK });
  return shown.type === 'show' ? shown.state : undefined;
}

const refusal = (code: string) => ({ type: 'refused', code, message: expect.any(String) });
const notice = (owner: Owner, result: object) => ({ lock: LOCK, owner, result: expect.objectContaining(result) });

describe('acquire and release', () => {
  it('a free lock is granted under the revision of the command', () => {
    expect(acquire(A, { data: utf8('x') })).toEqual({
      result: { type: 'granted', version: 2, depth: 1, lockTimeMs: 50_000 },
      notices: [],
    });
    const holder = { owner: publicOwner(A), version: 2, depth: 1, lockTimeMs: 50_000, data: utf8('x') };
    expect(state()?.holders).toMatchObject([{ ...holder, mode: 'exclusive', permits: 0 }]);
  });

  it('an uncontended cycle costs one get and one write each way, and leaves nothing', () => {
    acquire(A);
    expect(view.calls).toEqual({ get: 1, put: 1, delete: 0, scan: 0, rowsScanned: 0, attach: 1, detach: 0 });
    view.resetCalls();
    expect(release(A).result).toEqual({ type: 'released', depth: 0, version: 2 });
    expect(view.calls).toEqual({ get: 1, put: 0, delete: 1, scan: 0, rowsScanned: 0, attach: 0, detach: 1 });
    expect(view.rows).toEqual([]);
    expect(view.attachments).toBe(0);
  });

  it('a try on a taken lock is answered with its holder and queues nobody', () => {
    acquire(A);
    expect(acquire(B, { wait: false }).result).toMatchObject({
      type: 'busy',
      holder: { owner: publicOwner(A), version: 2 },
    });
    expect(state()?.waiterCount).toBe(0);
  });

  it('waiters are granted in the order in which they came, each under a later version', () => {
    acquire(A);
    expect(acquire(B, { data: utf8('of b') }).result).toEqual({ type: 'queued', position: 1 });
    expect(acquire(C).result).toEqual({ type: 'queued', position: 2 });
    expect(release(A).notices).toEqual([notice(B, { type: 'granted', version: 5, depth: 1 })]);
    expect(state()?.holders[0]?.data).toEqual(utf8('of b'));
    expect(release(B).notices).toEqual([notice(C, { type: 'granted', version: 6 })]);
    expect(release(C).notices).toEqual([]);
    expect(view.rows).toEqual([]);
    expect(view.attachments).toBe(0);
  });

  it('a re-entry deepens the hold, keeps its version, and is limited', () => {
    acquire(A);
    expect(acquire(A, { depthMax: 2 }).result).toMatchObject({ type: 'granted', version: 2, depth: 2 });
    expect(acquire(A, { depthMax: 2 }).result).toEqual(refusal('LOCK_DEPTH_EXCEEDED'));
    expect(release(A).result).toEqual({ type: 'released', depth: 1, version: 2 });
    expect(release(A).result).toEqual({ type: 'released', depth: 0, version: 2 });
  });

  it('a release of all levels hands over at once', () => {
    acquire(A);
    acquire(A);
    acquire(B);
    expect(release(A, { all: true })).toMatchObject({ result: { depth: 0 }, notices: [{ owner: B }] });
  });

  it('only its holder releases a lock', () => {
    expect(release(A).result).toEqual(refusal('LOCK_NOT_HELD'));
    acquire(A);
    expect(release(B).result).toEqual(refusal('LOCK_WRONG_OWNER'));
    expect(release({ session: S1, token: 'other' }).result).toEqual(refusal('LOCK_WRONG_OWNER'));
    expect(release({ ...A, session: { ...S1, incarnation: 6 } }).result).toEqual(refusal('SESSION_EXPIRED'));
    acquire(B);
    expect(release(B).result).toEqual(refusal('LOCK_NOT_HELD'));
    expect(state()).toMatchObject({ holders: [{ owner: publicOwner(A) }], waiterCount: 1 });
  });

  it('a waiter that asks again keeps its place, and may extend its wait', () => {
    acquire(A);
    acquire(B, { waitUntilMs: 2_000 });
    acquire(C);
    expect(acquire(B, { waitUntilMs: 4_000 }).result).toEqual({ type: 'queued', position: 1 });
    expect(acquire(C).result).toEqual({ type: 'queued', position: 2 });
    view.timeMs = 3_000;
    expect(release(A).notices).toEqual([notice(B, { type: 'granted' })]);
  });

  it('a position never understates, and follows the front of the queue', () => {
    const D: Owner = { session: S3, token: 'd' };
    acquire(A);
    acquire(B);
    acquire(C);
    acquire(D);
    cancel(C);
    expect(acquire(D).result).toEqual({ type: 'queued', position: 2 });
    release(A);
    expect(acquire(D).result).toEqual({ type: 'queued', position: 1 });
  });

  it('a queue is bounded', () => {
    acquire(A);
    acquire(B);
    // The head's counter is what the bound reads; filling it row by row would test nothing more.
    const head = view.rows[0];
    const full = Buffer.from(head?.value ?? []);
    full.writeUInt32BE(WAITERS_MAX, 2);
    view.put(head?.key ?? Buffer.alloc(0), full);
    expect(acquire(C).result).toEqual(refusal('RESOURCE_EXHAUSTED'));
  });

  it('a hand-over costs the same with 10 waiters as with 5,000', () => {
    const cost = (waiters: number) => {
      view = new MemoryView();
      view.begin(S1);
      view.begin(S2);
      acquire(A);
      for (let i = 0; i < waiters; i++) acquire({ session: S2, token: `t${i}` });
      view.resetCalls();
      release(A);
      return { ...view.calls };
    };
    expect(cost(5_000)).toEqual(cost(10));
    expect(cost(10)).toEqual({ get: 3, put: 1, delete: 2, scan: 1, rowsScanned: 0, attach: 1, detach: 1 });
  });

  it('among sessions that want the lock once each nothing is looked for (W5, W8)', () => {
    const sessions = [S1, S2, S3];
    for (const session of sessions) acquire({ session, token: 't' });
    view.resetCalls();
    for (const session of [...sessions, ...sessions]) {
      release({ session, token: 't' });
      acquire({ session, token: 't' });
      expect(view.attachments).toBe(sessions.length);
    }
    expect(view.calls).toMatchObject({ scan: 0, attach: 6, detach: 6 });
  });

  it('a session that waits twice keeps its place when one of the two has had its turn (W8)', () => {
    for (const owner of [A, B, C, { ...B, token: 'again' }]) acquire(owner);
    release(A);
    release(B);
    expect(view.attachedLocks(B.session)).toEqual([LOCK]);
    release(C);
    expect(view.attachedLocks(B.session)).toEqual([LOCK]);
    release({ ...B, token: 'again' });
    expect(view.attachments).toBe(0);
  });
});

describe('waits that end', () => {
  it('a waiter whose time has passed is passed over and answered', () => {
    acquire(A);
    acquire(B, { waitUntilMs: 2_000 });
    acquire(C, { waitUntilMs: 2_001 });
    view.timeMs = 2_001;
    expect(release(A).notices).toEqual([
      notice(B, { type: 'refused', code: 'LOCK_TIMEOUT' }),
      notice(C, { type: 'granted' }),
    ]);
    expect(view.attachedLocks(S2)).toEqual([]);
  });

  it('an acquire whose wait is over is refused, and leaves the queue, even when the lock is free', () => {
    acquire(A);
    acquire(B, { waitUntilMs: 2_000 });
    view.timeMs = 2_001;
    expect(acquire(B, { waitUntilMs: 2_000 }).result).toEqual(refusal('LOCK_TIMEOUT'));
    expect(state()?.waiterCount).toBe(0);
    release(A);
    expect(acquire(B, { waitUntilMs: 2_000 }).result).toEqual(refusal('LOCK_TIMEOUT'));
  });

  it('a cancelled waiter leaves the queue, and its open acquire is answered', () => {
    acquire(A);
    acquire(B);
    expect(cancel(B)).toEqual({
      result: { type: 'canceled', released: false },
      notices: [notice(B, { type: 'refused', code: 'LOCK_CANCELED' })],
    });
    expect(release(A).notices).toEqual([]);
  });

  it('a cancel that comes after the grant gives it back, to the next', () => {
    acquire(A);
    acquire(B);
    expect(cancel(A)).toEqual({
      result: { type: 'canceled', released: true },
      notices: [notice(B, { type: 'granted', version: 4 })],
    });
  });

  it('force release takes all levels, tells the holder and hands over', () => {
    expect(apply({ type: 'forceRelease', lock: LOCK }).result).toEqual(refusal('LOCK_NOT_HELD'));
    acquire(A);
    acquire(A);
    acquire(B);
    expect(apply({ type: 'forceRelease', lock: LOCK })).toEqual({
      result: { type: 'released', depth: 0, version: 3 },
      notices: [notice(A, { type: 'released', depth: 0, version: 3 }), notice(B, { type: 'granted', version: 6 })],
    });
  });
});

describe('force release up to a version', () => {
  it('takes the lock from nobody who was granted it later', () => {
    acquire(A);
    acquire(B);
    release(A);
    expect(state()).toMatchObject({ holders: [{ owner: publicOwner(B), version: 4 }] });
    const before = view.rows;
    expect(apply({ type: 'forceRelease', lock: LOCK, upToVersion: 2, reason: 'dead' })).toEqual({
      result: { ...refusal('LOCK_NOT_HELD'), message: expect.stringContaining('granted again since version 2') },
      notices: [],
    });
    expect(view.rows).toEqual(before);
  });

  it('ends the earlier of several holds', () => {
    const shared = { as: { type: 'shared' } } as const;
    acquire(A, shared);
    acquire(B, shared);
    expect(apply({ type: 'forceRelease', lock: LOCK, upToVersion: 2 }).result).toMatchObject({ version: 2 });
    expect(state()).toMatchObject({ holders: [{ owner: publicOwner(B) }] });
  });
});

describe('sessions', () => {
  it('a session that is not alive is granted nothing', () => {
    view.end(S1);
    expect(acquire(A).result).toEqual(refusal('SESSION_EXPIRED'));
    expect(view.rows).toEqual([]);
  });

  it('the end of a session passes its lock on in the same entry, and answers its waiters', () => {
    const A2: Owner = { session: S1, token: 'a2' };
    acquire(A);
    acquire(A2);
    acquire(B);
    expect(end(S1)).toEqual([notice(A2, { code: 'SESSION_EXPIRED' }), notice(B, { type: 'granted', version: 5 })]);
    expect(view.attachedLocks(S1)).toEqual([]);
    expect(sessionEnded(view, S1, LOCK)).toEqual({ notices: [], delayed: [] });
    expect(state()).toMatchObject({ holders: [{ owner: publicOwner(B) }], waiterCount: 0 });
  });

  it('a waiter whose session died unheard is skipped at hand-over', () => {
    acquire(A);
    acquire(B);
    acquire(C);
    view.end(S2);
    expect(release(A).notices).toEqual([notice(B, { code: 'SESSION_EXPIRED' }), notice(C, { type: 'granted' })]);
  });

  it('a session stays attached while any of its handles has something in the lock', () => {
    const A2: Owner = { session: S1, token: 'a2' };
    acquire(A);
    acquire(A2);
    release(A);
    expect(view.attachedLocks(S1)).toHaveLength(1);
    release(A2);
    expect(view.attachedLocks(S1)).toHaveLength(0);
  });
});

describe('marks, without numbers', () => {
  it('an acquire that a cancel overtook is refused', () => {
    cancel(A, { deadlineMs: 6_000 });
    expect(acquire(A, { deadlineMs: 6_000 }).result).toEqual(refusal('LOCK_CANCELED'));
    expect(acquire(B).result).toMatchObject({ type: 'granted' });
  });

  it('an acquire that a release overtook is refused, while a new one with a later deadline passes', () => {
    acquire(A, { deadlineMs: 6_000 });
    release(A, { deadlineMs: 6_000 });
    expect(acquire(A, { deadlineMs: 6_000 }).result).toEqual(refusal('LOCK_CANCELED'));
    expect(acquire(A, { deadlineMs: 6_001 }).result).toMatchObject({ type: 'granted' });
  });

  it('a refused release leaves a mark too: its answer stays true', () => {
    release(A, { deadlineMs: 6_000 });
    expect(acquire(A, { deadlineMs: 6_000 }).result).toEqual(refusal('LOCK_CANCELED'));
  });

  it('a mark is cleared by any command once its end has passed', () => {
    cancel(A, { deadlineMs: 6_000 });
    view.timeMs = 6_000;
    release(B);
    expect(view.rows).toHaveLength(3);
    view.timeMs = 6_001;
    release(B);
    expect(view.rows).toEqual([]);
    expect(view.attachments).toBe(0);
  });

  it('a mark that no command comes for is found by its row, and cleared by one that changes nothing else', () => {
    acquire(A);
    const before = [...view.rows];
    cancel(B, { deadlineMs: 6_000 });
    const marks = view.rows.map(({ key }) => markOfRow(key)).filter((mark) => mark !== undefined);
    expect(marks).toEqual([{ lock: LOCK, deadlineMs: 6_000 }]);
    expect(firstMark(view, LOCK)).toEqual({ owner: B, deadlineMs: 6_000 });
    view.timeMs = 6_001;
    const command = clearingOfMarks(LOCK, B);
    expect(validateLockCommand(command)).toBeUndefined();
    expect(apply(command).notices).toEqual([]);
    expect([view.rows, firstMark(view, LOCK)]).toEqual([before, undefined]);
  });

  it('marks end with their session', () => {
    cancel(A);
    cancel({ ...A, token: 'a2' });
    end(S1);
    expect(view.rows).toEqual([]);
  });

  it('a release that says nothing is under way leaves no mark', () => {
    acquire(A);
    release(A, { deadlineMs: 0 });
    expect(view.rows).toEqual([]);
  });

  it('many marks that ended are cleared faster than new ones come', () => {
    for (let i = 0; i < 100; i++) cancel({ session: S1, token: `t${i}` }, { deadlineMs: 2_000 });
    view.timeMs = 2_001;
    for (let i = 0; i < 7; i++) cancel({ session: S1, token: `u${i}` }, { deadlineMs: 9_000 });
    expect(view.rows).toHaveLength(1 + 2 * 7);
  });
});

describe('marks, with numbers', () => {
  it('release and acquire by one owner work at once, whatever the deadlines', () => {
    acquire(A, { attempt: 1, deadlineMs: 9_000 });
    release(A, { deadlineMs: 9_000 });
    expect(acquire(A, { attempt: 1, deadlineMs: 9_000 }).result).toEqual(refusal('LOCK_CANCELED'));
    expect(acquire(A, { attempt: 2, deadlineMs: 3_000 }).result).toMatchObject({ type: 'granted' });
  });

  it('an acquire asked again by the holder is not a re-entry', () => {
    acquire(A, { attempt: 1 });
    expect(acquire(A, { attempt: 1 }).result).toMatchObject({ type: 'granted', version: 2, depth: 1 });
    expect(acquire(A, { attempt: 2 }).result).toMatchObject({ version: 2, depth: 2 });
    expect(acquire(A, { attempt: 1 }).result).toMatchObject({ version: 2, depth: 2 });
  });

  it('the cancel of a re-entry undoes that level if it was granted, and only once', () => {
    acquire(A, { attempt: 1 });
    expect(cancel(A, { attempt: 2 }).result).toEqual({ type: 'canceled', released: false });
    expect(acquire(A, { attempt: 2 }).result).toEqual(refusal('LOCK_CANCELED'));
    acquire(A, { attempt: 3 });
    expect(cancel(A, { attempt: 3 }).result).toEqual({ type: 'canceled', released: true });
    expect(cancel(A, { attempt: 3 }).result).toEqual({ type: 'canceled', released: false });
    expect(state()?.holders[0]).toMatchObject({ owner: publicOwner(A), depth: 1, version: 2 });
  });

  it('a late release or cancel does not touch a later grant of the same owner', () => {
    acquire(A, { attempt: 1 });
    release(A, { attempt: 1 });
    acquire(A, { attempt: 2, data: utf8('second') });
    expect(release(A, { attempt: 1, all: true }).result).toEqual(refusal('LOCK_NOT_HELD'));
    expect(cancel(A, { attempt: 1, deadlineMs: 0 }).result).toEqual({ type: 'canceled', released: false });
    expect(state()?.holders[0]).toMatchObject({ owner: publicOwner(A), depth: 1, data: utf8('second') });
    expect(release(A, { attempt: 2 }).result).toMatchObject({ type: 'released', depth: 0 });
  });

  it('any level of a grant is released by the number that entered it, or a later one', () => {
    acquire(A, { attempt: 3 });
    acquire(A, { attempt: 5 });
    expect(release(A, { attempt: 5 }).result).toMatchObject({ type: 'released', depth: 1 });
    expect(release(A, { attempt: 2 }).result).toEqual(refusal('LOCK_NOT_HELD'));
    expect(release(A, { attempt: 3 }).result).toMatchObject({ type: 'released', depth: 0 });
  });

  it('a late cancel does not touch a newer acquire that waits', () => {
    acquire(A);
    acquire(B, { attempt: 2 });
    expect(cancel(B, { attempt: 1 })).toEqual({ result: { type: 'canceled', released: false }, notices: [] });
    expect(state()?.waiterCount).toBe(1);
  });
});
