import { utf8 } from '@remora/base';
import { beforeEach, describe, expect, it } from 'vitest';
import { gist, noticeGist } from '../../test/gist.ts';
import { MemoryView } from '../../test/memory-view.ts';
import {
  type AcquireAs,
  applyLockCommand,
  type DelayedHold,
  delayedHolds,
  isCurrent,
  type LockCommand,
  type LockId,
  type LockState,
  lockSpan,
  type Owner,
  publicOwner,
  queryLocks,
  type SessionRef,
  sessionEnded,
} from '../index.ts';

const LOCK: LockId = { namespace: 'default', name: utf8('plant') };
const A: Owner = { session: { lease: 1n, incarnation: 1 }, token: 't' };
const B: Owner = { session: { lease: 2n, incarnation: 1 }, token: 't' };
const C: Owner = { session: { lease: 3n, incarnation: 1 }, token: 't' };
const SHARED: AcquireAs = { type: 'shared' };
const permits = (count: number): AcquireAs => ({ type: 'permits', permits: count, capacity: 3 });

let view: MemoryView;
let told: string[];
let delayed: readonly DelayedHold[];

beforeEach(() => {
  view = new MemoryView();
  told = [];
  delayed = [];
  for (const { session } of [A, B, C]) view.begin(session);
});

/** The result in short; what others are told goes into `told`. */
function apply(command: LockCommand): string {
  view.revision += 1;
  const { result, notices } = applyLockCommand(view, command);
  told = notices.map(noticeGist);
  return gist(result);
}

function acquire(owner: Owner, as?: AcquireAs, delayMs = 0): string {
  const limits = { wait: true, waitUntilMs: 0, deadlineMs: view.timeMs + 5_000, depthMax: 3, attempt: 1 };
  const command = { type: 'acquire', lock: LOCK, owner, data: utf8(''), delayMs, ...limits } as const;
  return apply(as === undefined ? command : { ...command, as });
}

const delaying = (owner: Owner, as?: AcquireAs) => acquire(owner, as, 5_000);
const release = (owner: Owner) => apply({ type: 'release', lock: LOCK, owner, all: true, deadlineMs: 0, attempt: 99 });
const endDelay = (owner: Owner, version: number) => apply({ type: 'endDelay', lock: LOCK, owner, version });

function end({ session }: { readonly session: SessionRef }): void {
  view.revision += 1;
  view.end(session);
  const ends = view.attachedLocks(session).map((lock) => sessionEnded(view, session, lock));
  told = ends.flatMap(({ notices }) => notices.map(noticeGist));
  delayed = ends.flatMap((each) => each.delayed);
}

function state(): LockState | undefined {
  const shown = queryLocks(view, { type: 'show', lock: LOCK, allKinds: true });
  return shown.type === 'show' ? shown.state : undefined;
}

describe('lock-delay', () => {
  it('keeps the lock when the session ends, and hands it over when the delay does', () => {
    delaying(A);
    acquire(B);
    end(A);
    expect([told, delayed]).toEqual([[], [{ lock: LOCK, owner: A, version: 2, delayMs: 5_000 }]]);
    expect(state()).toMatchObject({ holders: [{ owner: publicOwner(A), delayed: true }], waiterCount: 1 });
    expect(view.attachedLocks(A.session)).toEqual([]);
    expect(acquire(C)).toBe('queued');
    expect(endDelay(A, 2)).toBe('released 0 2');
    expect(told).toEqual(['2/t granted 6 1']);
    expect(endDelay(A, 2)).toBe('LOCK_NOT_HELD');
  });

  it.each([
    { name: 'a release', ends: () => release(A) },
    { name: 'a cancel', ends: () => apply({ type: 'cancel', lock: LOCK, owner: A, deadlineMs: 0, attempt: 1 }) },
    { name: 'force', ends: () => apply({ type: 'forceRelease', lock: LOCK }) },
  ])('counts for nothing when the hold ends by $name', ({ ends }) => {
    delaying(A);
    ends();
    expect(view.rows).toEqual([]);
    end(A);
    expect(delayed).toEqual([]);
  });

  it('leaves its owner nothing: the hold is not current, not released, and not changed by it', () => {
    delaying(A);
    end(A);
    expect(isCurrent(view, LOCK, 2)).toBe(false);
    expect(release(A)).toBe('SESSION_EXPIRED');
    expect(delaying(A)).toBe('SESSION_EXPIRED');
    expect(apply({ type: 'setData', lock: LOCK, owner: A, version: 2, data: utf8('x') })).toBe('SESSION_EXPIRED');
    expect(apply({ type: 'cancel', lock: LOCK, owner: A, deadlineMs: 0, attempt: 1 })).toBe('canceled false');
    expect(state()).toMatchObject({ holders: [{ owner: publicOwner(A), delayed: true }] });
  });

  it('of who shares a lock keeps writers off, and upgrades, but no readers', () => {
    delaying(A, SHARED);
    acquire(B, SHARED);
    end(A);
    expect(apply({ type: 'acquire', ...upgrade(B) })).toBe('queued');
    expect(endDelay(A, 2)).toBe('released 0 2');
    expect(told).toEqual(['2/t granted 6 1']);
    release(B);
    delaying(C, SHARED);
    end(C);
    expect(acquire(B, SHARED)).toMatch(/^granted/);
    expect(isCurrent(view, LOCK, view.revision)).toBe(true);
  });

  it('of who has permits keeps as many from others', () => {
    delaying(A, permits(2));
    end(A);
    expect(acquire(B, permits(1))).toBe('granted 4 1');
    expect(acquire(C, permits(1))).toBe('queued');
    expect(state()).toMatchObject({ permits: 3, capacity: 3 });
    endDelay(A, 2);
    expect(told).toEqual(['3/t granted 6 1']);
    for (const owner of [B, C]) release(owner);
    expect(view.rows).toEqual([]);
  });

  it('leaves alone who has the id of the lease by now', () => {
    delaying(A, SHARED);
    end(A);
    const again: Owner = { session: { lease: 1n, incarnation: 7 }, token: 't' };
    view.begin(again.session);
    acquire(again, SHARED);
    endDelay(A, 2);
    expect(view.attachedLocks(again.session)).toEqual([LOCK]);
    expect(endDelay(again, 4)).toBe('LOCK_NOT_HELD');
    release(again);
    expect([view.rows, view.attachments]).toEqual([[], 0]);
  });

  it('is found again by looking through the records, of readers among others too', () => {
    delaying(A, SHARED);
    acquire(B, SHARED);
    delaying(C, SHARED);
    for (const owner of [A, C]) end(owner);
    const found = delayedHolds(view, lockSpan(LOCK));
    expect(found.map(({ owner, version, delayMs }) => [owner, version, delayMs])).toEqual([
      [A, 2, 5_000],
      [C, 4, 5_000],
    ]);
    expect(found.map(({ lock }) => Buffer.from(lock.name).toString())).toEqual(['plant', 'plant']);
    expect(sessionEnded(view, A.session, LOCK)).toEqual({ notices: [], delayed: [] });
  });
});

function upgrade(owner: Owner) {
  const limits = { wait: true, waitUntilMs: 0, deadlineMs: 9_000, depthMax: 3, attempt: 2 };
  return { lock: LOCK, owner, data: utf8(''), as: { type: 'upgrade' }, ...limits } as const;
}
