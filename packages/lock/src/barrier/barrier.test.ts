import { utf8 } from '@remora/base';
import { beforeEach, describe, expect, it } from 'vitest';
import { gist, noticeGist } from '../../test/gist.ts';
import { MemoryView } from '../../test/memory-view.ts';
import {
  type AcquireAs,
  applyLockCommand,
  BARRIER_WAITERS_MAX,
  type LockCommand,
  type LockId,
  type LockState,
  type Owner,
  ownerStatus,
  publicOwner,
  queryLocks,
  sessionEnded,
} from '../index.ts';

const LOCK: LockId = { namespace: 'default', name: utf8('gate') };
const ownerOf = (lease: bigint): Owner => ({ session: { lease, incarnation: 1 }, token: 't' });
const [A, B, C, D] = [ownerOf(1n), ownerOf(2n), ownerOf(3n), ownerOf(4n)] as const;

let view: MemoryView;
let told: string[];

beforeEach(() => {
  view = new MemoryView();
  told = [];
  for (const { session } of [A, B, C, D]) view.begin(session);
});

/** The result in short; what others are told goes into `told`. */
function apply(command: LockCommand): string {
  view.revision += 1;
  const { result, notices } = applyLockCommand(view, command);
  told = notices.map(noticeGist);
  return gist(result);
}

type Acquire = Extract<LockCommand, { readonly type: 'acquire' }>;

function acquire(owner: Owner, as?: AcquireAs, more: Partial<Acquire> = {}): string {
  const limits = { wait: true, waitUntilMs: 0, deadlineMs: view.timeMs + 5_000, depthMax: 3 };
  const command = { type: 'acquire', lock: LOCK, owner, data: utf8(''), attempt: 1, ...limits, ...more } as const;
  return apply(as === undefined ? command : { ...command, as });
}

const pass = (owner: Owner, more: Partial<Acquire> = {}) => acquire(owner, { type: 'pass' }, more);
const enter = (owner: Owner, parties: number, more: Partial<Acquire> = {}) =>
  acquire(owner, { type: 'enter', parties }, more);
const leave = (owner: Owner, attempt = 2) => pass(owner, { attempt });
const release = (owner: Owner) => apply({ type: 'release', lock: LOCK, owner, all: true, deadlineMs: 0, attempt: 99 });
const cancel = (owner: Owner, attempt: number) =>
  apply({ type: 'cancel', lock: LOCK, owner, deadlineMs: view.timeMs + 5_000, attempt });

function end({ session }: Owner): void {
  view.revision += 1;
  view.end(session);
  told = view.attachedLocks(session).flatMap((lock) => sessionEnded(view, session, lock).notices.map(noticeGist));
}

function state(): LockState | undefined {
  const shown = queryLocks(view, { type: 'show', lock: LOCK, allKinds: true });
  return shown.type === 'show' ? shown.state : undefined;
}

describe('who waits for a lock to be free', () => {
  it('passes at once where nobody holds it, and otherwise together with all others, before the queue (B1)', () => {
    expect(pass(B)).toBe('granted 2 0');
    release(B);
    acquire(A);
    expect([pass(B, { attempt: 2 }), pass(C), acquire(D)]).toEqual(['queued', 'queued', 'queued']);
    expect(state()).toMatchObject({ holderCount: 1, waiterCount: 1, passing: 2 });
    release(A);
    expect(told).toEqual(['2/t granted 8 0', '3/t granted 8 0', '4/t granted 8 1']);
    expect(state()).toMatchObject({ holders: [{ owner: publicOwner(D) }], passing: 0 });
  });

  it('passes as the last of those who leave, though the next in the queue has it then (B1)', () => {
    for (const owner of [A, B]) enter(owner, 2);
    expect(acquire(D)).toBe('queued');
    expect(leave(A)).toBe('queued');
    expect(leave(B)).toBe('granted 6 0');
    expect(told).toHaveLength(2); // A passes, and D has it.
    expect(state()).toMatchObject({ holders: [{ owner: publicOwner(D) }], holderCount: 1, passing: 0 });
  });

  it('passes when the last of those who share it lets go, by the end of a session too', () => {
    acquire(A, { type: 'shared' });
    acquire(B, { type: 'shared' });
    pass(C);
    release(A);
    expect(told).toEqual([]);
    end(B);
    expect(told).toEqual(['3/t granted 6 0']);
  });

  it('is told so again when it asks again, though the lock is held again, until it says that it knows (B4)', () => {
    acquire(A);
    pass(B);
    release(A);
    acquire(C);
    expect(pass(B)).toBe('granted 4 0');
    expect(release(B)).toBe('released 0 4');
    expect(pass(B, { attempt: 2 })).toBe('queued');
  });

  it('leaves nothing behind when it gives up, or with its session', () => {
    acquire(A);
    pass(B);
    pass(C);
    expect(cancel(B, 1)).toBe('canceled false');
    expect(told).toEqual(['2/t LOCK_CANCELED']);
    expect(pass(B)).toBe('LOCK_CANCELED');
    end(C);
    expect(told).toEqual(['3/t SESSION_EXPIRED']);
    expect(state()).toMatchObject({ passing: 0 });
    release(A);
    for (const owner of [A, B]) end(owner);
    expect([view.rows, view.attachments]).toEqual([[], 0]);
  });
});

describe('a double barrier', () => {
  it('lets parties in together once all are there, and out together once all have left', () => {
    expect([enter(A, 3), enter(B, 3)]).toEqual(['queued', 'queued']);
    expect(enter(C, 3)).toBe('granted 4 1');
    expect(told).toEqual(['1/t granted 2 1', '2/t granted 3 1', '3/t granted 4 1']);
    expect([leave(A), leave(B)]).toEqual(['queued', 'queued']);
    expect(leave(C)).toBe('granted 7 0');
    expect(told).toEqual(['1/t granted 7 0', '2/t granted 7 0']);
  });

  it('lets nobody into the next round while one has not left, however quick it is (B1)', () => {
    enter(A, 2);
    enter(B, 2);
    expect(leave(A)).toBe('queued');
    // The last one out lets both go in one step, and only then can any come in again.
    expect(leave(B)).toMatch(/^granted \d+ 0$/);
    expect(enter(A, 2, { attempt: 3 })).toBe('queued');
    expect(enter(B, 2, { attempt: 3 })).toMatch(/^granted \d+ 1$/);
  });

  it('counts nobody whose wait is over or whose session is dead (B3)', () => {
    enter(A, 2, { waitUntilMs: view.timeMs + 10 });
    view.timeMs += 20;
    expect(enter(B, 2)).toBe('queued');
    expect(told).toEqual(['1/t LOCK_TIMEOUT']);
    view.end(B.session);
    expect(enter(C, 2)).toBe('queued');
    expect(told).toEqual(['2/t SESSION_EXPIRED']);
    expect(enter(D, 2)).toMatch(/^granted/);
    expect(state()).toMatchObject({ holderCount: 2, passing: 0 });
  });

  it('does not count again one who left, by an asking that comes late', () => {
    enter(A, 1);
    expect(leave(A)).toMatch(/^granted \d+ 0$/);
    expect(enter(A, 1)).toBe('LOCK_CANCELED');
    expect(state()).toBeUndefined();
  });

  it('is no lock for others while parties wait, and takes no party while the lock is held', () => {
    enter(A, 2);
    expect(acquire(B)).toBe('queued');
    expect(enter(C, 2)).toBe('LOCK_KIND_MISMATCH');
    cancel(A, 1);
    expect(told).toEqual(['1/t LOCK_CANCELED', '2/t granted 5 1']);
    expect(enter(C, 2)).toBe('LOCK_KIND_MISMATCH');
  });

  it('gives one who waits to enter nothing else meanwhile: no upgrade by a share that ends with its wait (B6)', () => {
    enter(C, 4, { waitUntilMs: view.timeMs + 10 });
    view.timeMs += 20;
    for (const as of [{ type: 'upgrade' }, { type: 'shared' }, undefined] as const) {
      expect(acquire(C, as, { attempt: 2 })).toBe('LOCK_KIND_MISMATCH');
    }
    expect(apply({ type: 'downgrade', lock: LOCK, owner: C, attempt: 2 })).toBe('LOCK_KIND_MISMATCH');
    expect(state()).toMatchObject({ holderCount: 1, waiterCount: 0, passing: 1 });
  });

  it('makes nobody alone by a share that was taken out in the same step (B3, B6)', () => {
    enter(A, 2, { waitUntilMs: view.timeMs + 10 });
    view.timeMs += 20;
    expect(acquire(A, { type: 'upgrade' }, { attempt: 2 })).toBe('LOCK_KIND_MISMATCH');
    // Enough would share it now, but its wait was over before that.
    acquire(B, { type: 'shared' });
    expect(told).toEqual(['1/t LOCK_TIMEOUT']);
    acquire(C, { type: 'shared' });
    expect(acquire(A, { type: 'upgrade' }, { attempt: 3 })).toBe('LOCK_NOT_HELD');
    expect(state()?.holders.every(({ mode }) => mode === 'shared')).toBe(true);
    expect([release(B), release(C)].every((each) => each.startsWith('released'))).toBe(true);
  });

  it('has no upgrade wait for one that is taken out as its wait is over (B3, B6)', () => {
    enter(A, 3, { waitUntilMs: view.timeMs + 10 });
    enter(B, 4);
    expect(acquire(A, { type: 'upgrade' }, { attempt: 2 })).toBe('LOCK_KIND_MISMATCH');
    view.timeMs += 20;
    expect(enter(B, 2, { attempt: 2 })).toBe('queued');
    expect(told).toEqual(['1/t LOCK_TIMEOUT']);
    expect(state()).toMatchObject({ holderCount: 1, waiterCount: 0 });
  });
});

describe('parties are complete', () => {
  it('by a share that was asked for without entering, at once (B2)', () => {
    enter(A, 3);
    enter(B, 2);
    expect(told).toEqual(['2/t granted 3 1']);
    expect(acquire(C, { type: 'shared' })).toBe('granted 4 1');
    expect(told).toEqual(['1/t granted 2 1']);
    expect(state()).toMatchObject({ holderCount: 3, passing: 0 });
  });

  it('by shares that are granted from the queue, at once (B2)', () => {
    enter(A, 2);
    acquire(B);
    expect(acquire(C, { type: 'shared' })).toBe('queued');
    cancel(B, 1);
    expect(told).toEqual(['2/t LOCK_CANCELED', '3/t granted 5 1', '1/t granted 2 1']);
  });

  it('not by one that is dead and keeps others off for a while (B3, T1)', () => {
    acquire(A, { type: 'shared' }, { delayMs: 5_000 });
    end(A);
    expect(enter(B, 2)).toBe('queued');
    expect(enter(C, 3, { wait: false })).toBe('LOCK_TIMEOUT');
    expect(enter(C, 2)).toMatch(/^granted/);
  });

  it('not by one that is dead and has not been taken out yet: who does not wait is refused (B3)', () => {
    enter(A, 2);
    view.end(A.session);
    expect(enter(B, 2, { wait: false })).toBe('LOCK_TIMEOUT');
    expect(told).toEqual(['1/t SESSION_EXPIRED']);
    expect(state()).toBeUndefined();
  });
});

describe('one who has passed and goes on to something else', () => {
  it('is not told that it passed when it waits for the lock (B4)', () => {
    expect(pass(A)).toBe('granted 2 0');
    acquire(B);
    expect(acquire(A, undefined, { attempt: 2 })).toBe('queued');
    expect(ownerStatus(view, LOCK, A)).toMatchObject({ type: 'queued', position: 1 });
    release(B);
    expect(ownerStatus(view, LOCK, A)).toMatchObject({ type: 'granted', version: 5, depth: 1 });
    expect(release(A)).toBe('released 0 5');
    expect(ownerStatus(view, LOCK, A)).toMatchObject({ type: 'refused' });
    expect(view.rows).toEqual([]);
  });

  it('is told so again when the name is a semaphore by then (B4)', () => {
    acquire(A);
    pass(B);
    release(A);
    acquire(C, { type: 'permits', permits: 1, capacity: 1 });
    expect(pass(B)).toBe('granted 4 0');
    expect(pass(B, { attempt: 2 })).toBe('LOCK_KIND_MISMATCH');
  });

  it('is told so again behind a late release of what it held before (M1, B4)', () => {
    acquire(A);
    expect(pass(A, { attempt: 2 })).toBe('granted 3 0');
    expect(apply({ type: 'release', lock: LOCK, owner: A, all: true, deadlineMs: 0, attempt: 1 })).toBe(
      'LOCK_NOT_HELD',
    );
    acquire(B);
    expect(pass(A, { attempt: 2 })).toBe('granted 3 0');
    expect(release(A)).toBe('released 0 3');
  });

  it('is told of the lock that it holds, also if it waited in both ways', () => {
    acquire(B);
    acquire(A);
    pass(A, { attempt: 2 });
    release(B);
    expect(ownerStatus(view, LOCK, A)).toMatchObject({ type: 'granted', depth: 1 });
  });
});

it('takes no more who wait to pass than are let through in one step', () => {
  acquire(A);
  const waiter = (i: number): Owner => ({ ...B, token: `${i}` });
  for (let i = 0; i < BARRIER_WAITERS_MAX; i += 1) pass(waiter(i));
  expect(pass(C)).toBe('RESOURCE_EXHAUSTED');
  expect(pass(waiter(0), { attempt: 2 })).toBe('queued');
  expect(state()).toMatchObject({ passing: BARRIER_WAITERS_MAX });
  release(A);
  expect(told.length).toBe(BARRIER_WAITERS_MAX);
  expect(pass(C)).toBe('RESOURCE_EXHAUSTED');
  release(waiter(0));
  expect(pass(C)).toMatch(/^granted/);
});
