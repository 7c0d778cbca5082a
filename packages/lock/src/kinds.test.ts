import { utf8 } from '@remora/base';
import { beforeEach, describe, expect, it } from 'vitest';
import { gist, noticeGist, shownName } from '../test/gist.ts';
import { MemoryView } from '../test/memory-view.ts';
import {
  type AcquireAs,
  applyLockCommand,
  type LockCommand,
  type LockId,
  type LockState,
  type Owner,
  publicOwner,
  queryLocks,
  sessionEnded,
} from './index.ts';

const LOCK: LockId = { namespace: 'default', name: utf8('orders') };
const [A, B, C, D, E] = [1n, 2n, 3n, 4n, 5n].map((lease) => ({ session: { lease, incarnation: 1 }, token: 't' }));
const OWNERS = [A, B, C, D, E] as const;
const SHARED: AcquireAs = { type: 'shared' };
const UPGRADE: AcquireAs = { type: 'upgrade' };

let view: MemoryView;
let told: string[];

beforeEach(() => {
  view = new MemoryView();
  told = [];
  for (const owner of OWNERS) view.begin(of(owner).session);
});

const shown = (owner: Owner | undefined) => publicOwner(of(owner));

/** As every element of an array, an owner may be missing to the compiler. */
function of(owner: Owner | undefined): Owner {
  if (owner === undefined) throw new Error('there are five owners');
  return owner;
}

/** The result in short; what others are told goes into `told`. */
function apply(command: LockCommand): string {
  view.revision += 1;
  const { result, notices } = applyLockCommand(view, command);
  told = notices.map(noticeGist);
  return gist(result);
}

type Acquire = Extract<LockCommand, { readonly type: 'acquire' }>;

function acquire(owner: Owner | undefined, as?: AcquireAs, more: Partial<Acquire> = {}): string {
  const limits = { wait: true, waitUntilMs: 0, deadlineMs: view.timeMs + 5_000, depthMax: 3 };
  const command: LockCommand = {
    ...{ type: 'acquire', lock: LOCK, owner: of(owner), data: utf8(''), attempt: 1 },
    ...limits,
    ...more,
  };
  return apply(as === undefined ? command : { ...command, as });
}

const upgrade = (owner: Owner | undefined, more: Partial<Acquire> = {}) =>
  acquire(owner, UPGRADE, { attempt: 2, ...more });
const downgrade = (owner: Owner | undefined, attempt = 2) =>
  apply({ type: 'downgrade', lock: LOCK, owner: of(owner), attempt });
const release = (owner: Owner | undefined) =>
  apply({ type: 'release', lock: LOCK, owner: of(owner), all: true, deadlineMs: 0, attempt: 9 });
const cancel = (owner: Owner | undefined, attempt: number) =>
  apply({ type: 'cancel', lock: LOCK, owner: of(owner), deadlineMs: view.timeMs + 5_000, attempt });
const permits = (count: number, capacity = 3): AcquireAs => ({ type: 'permits', permits: count, capacity });
const setCapacity = (capacity: number) => apply({ type: 'setCapacity', lock: LOCK, capacity });

function end(owner: Owner | undefined): void {
  const { session } = of(owner);
  view.revision += 1;
  view.end(session);
  told = view.attachedLocks(session).flatMap((lock) => sessionEnded(view, session, lock).notices.map(noticeGist));
}

function state(): LockState | undefined {
  const shown = queryLocks(view, { type: 'show', lock: LOCK, allKinds: true });
  return shown.type === 'show' ? shown.state : undefined;
}

function expectNothingLeft(): void {
  expect(view.rows).toEqual([]);
  expect(view.attachments).toBe(0);
}

describe('shared locks', () => {
  it('readers hold it together, each under a version of its own', () => {
    expect([acquire(A, SHARED), acquire(B, SHARED)]).toEqual(['granted 2 1', 'granted 3 1']);
    expect(state()).toMatchObject({
      kind: 'shared',
      holderCount: 2,
      holders: [{ owner: shown(A), mode: 'shared' }, { owner: shown(B) }],
    });
    expect([release(B), release(A)]).toEqual(['released 0 3', 'released 0 2']);
    expectNothingLeft();
  });

  it('whoever comes later waits behind one who waits to have it alone, readers too', () => {
    acquire(A, SHARED);
    expect(acquire(B)).toBe('queued');
    expect(acquire(C, SHARED)).toBe('queued');
    expect(acquire(D, SHARED, { wait: false })).toBe(`busy ${shownName(of(A))}`);
    release(A);
    expect(told).toEqual(['2/t granted 6 1']);
    release(B);
    expect(told).toEqual(['3/t granted 7 1']);
  });

  it('readers who wait one after the other are let in by one command, under one version', () => {
    acquire(A);
    for (const reader of [B, C]) acquire(reader, SHARED);
    acquire(D);
    acquire(E, SHARED);
    release(A);
    expect(told).toEqual(['2/t granted 7 1', '3/t granted 7 1']);
    expect(state()).toMatchObject({
      holderCount: 2,
      waiters: [
        { owner: shown(D), mode: 'exclusive' },
        { owner: shown(E), mode: 'shared' },
      ],
    });
  });

  it('a reader enters again though others wait, so that nobody waits for itself', () => {
    acquire(A, SHARED);
    acquire(B);
    expect(acquire(A, SHARED, { attempt: 2 })).toBe('granted 2 2');
    expect(acquire(A, SHARED, { attempt: 3, depthMax: 2 })).toBe('LOCK_DEPTH_EXCEEDED');
    expect(acquire(A, undefined, { attempt: 3 })).toBe('LOCK_KIND_MISMATCH');
  });

  it('when the first in the queue gives up, those behind it are let in at once', () => {
    acquire(A, SHARED);
    acquire(B);
    acquire(C, SHARED);
    expect(cancel(B, 1)).toBe('canceled false');
    expect(told).toEqual(['2/t LOCK_CANCELED', '3/t granted 5 1']);
  });

  it('a waiter whose time is over holds nobody up once anybody asks', () => {
    acquire(A, SHARED);
    acquire(B, undefined, { waitUntilMs: 1_500 });
    acquire(C, SHARED);
    view.timeMs = 2_000;
    expect(acquire(C, SHARED)).toBe('granted 5 1');
    expect(told[0]).toBe('2/t LOCK_TIMEOUT');
    expect(acquire(D, SHARED, { wait: false })).toBe('granted 6 1');
  });

  it('the end of a session takes its shares and its places, and lets the next in', () => {
    acquire(A, SHARED);
    acquire(B, SHARED);
    acquire(C);
    end(B);
    expect(told).toEqual([]);
    end(A);
    expect(told).toEqual(['3/t granted 6 1']);
    end(C);
    expectNothingLeft();
  });

  it('a forced release takes it from all', () => {
    acquire(A, SHARED);
    acquire(B, SHARED);
    upgrade(A);
    acquire(C);
    expect(apply({ type: 'forceRelease', lock: LOCK })).toBe('released 0 3');
    expect(told).toEqual(['1/t LOCK_NOT_HELD', '1/t released 0 2', '2/t released 0 3', '3/t granted 6 1']);
  });

  it('who asks for something else by now gets a new place', () => {
    acquire(A);
    acquire(B);
    acquire(C, SHARED);
    expect(acquire(B, SHARED, { attempt: 2 })).toBe('queued');
    release(A);
    expect(told).toEqual(['3/t granted 6 1', '2/t granted 6 1']);
  });
});

describe('upgrade and downgrade', () => {
  it('the only reader has it alone at once, under a new version, before those who wait', () => {
    acquire(A, SHARED);
    acquire(B);
    expect(upgrade(A)).toBe('granted 4 1');
    expect(state()).toMatchObject({ kind: 'exclusive', holders: [{ owner: shown(A), version: 4 }], waiterCount: 1 });
    release(A);
    expect(told).toEqual(['2/t granted 5 1']);
  });

  it('among other readers it waits for them, and nobody joins them meanwhile', () => {
    acquire(A, SHARED);
    acquire(B, SHARED);
    expect(upgrade(A)).toBe('queued');
    expect(acquire(C, SHARED)).toBe('queued');
    expect(state()?.waiters.map(({ owner, mode }) => [owner, mode])).toEqual([
      [shown(A), 'upgrade'],
      [shown(C), 'shared'],
    ]);
    release(B);
    expect(told).toEqual(['1/t granted 6 1']);
    expect(downgrade(A)).toBe('granted 7 1');
    expect(told).toEqual(['3/t granted 7 1']);
  });

  it('the second who upgrades is refused, in place of a deadlock', () => {
    acquire(A, SHARED);
    acquire(B, SHARED);
    upgrade(A);
    expect(upgrade(B)).toBe('LOCK_UPGRADE_CONFLICT');
    expect(upgrade(A)).toBe('queued');
    release(B);
    expect(told).toEqual(['1/t granted 7 1']);
  });

  it('a try that does not succeed changes nothing', () => {
    acquire(A, SHARED);
    acquire(B, SHARED);
    expect(upgrade(A, { wait: false })).toBe(`busy ${shownName(of(B))}`);
    expect(acquire(C, SHARED)).toBe('granted 5 1');
  });

  it('one that is given up leaves the lock shared, and may not be granted when it comes late', () => {
    acquire(A, SHARED);
    acquire(B, SHARED);
    upgrade(A);
    acquire(C, SHARED);
    expect(downgrade(A)).toBe('granted 2 1');
    expect(told).toEqual(['1/t LOCK_CANCELED', '3/t granted 6 1']);
    for (const reader of [B, C]) release(reader);
    expect(upgrade(A)).toBe('LOCK_CANCELED');
    expect(upgrade(A, { attempt: 3 })).toBe('granted 10 1');
  });

  it('its cancel undoes the upgrade and no level, also when it was granted, and only once', () => {
    acquire(A, SHARED);
    upgrade(A);
    expect(cancel(A, 2)).toBe('canceled true');
    expect(state()).toMatchObject({ kind: 'shared', holders: [{ owner: shown(A), version: 4, depth: 1 }] });
    expect(cancel(A, 2)).toBe('canceled false');
    acquire(B, SHARED);
    upgrade(A, { attempt: 3 });
    cancel(A, 3);
    cancel(A, 3);
    expect(state()?.holderCount).toBe(2);
  });

  it('a downgrade that comes late does not undo a later upgrade', () => {
    acquire(A, SHARED);
    upgrade(A);
    downgrade(A, 2);
    expect(upgrade(A, { attempt: 3 })).toBe('granted 5 1');
    expect(downgrade(A, 2)).toBe('granted 5 1');
    expect(state()?.kind).toBe('exclusive');
  });

  it('its wait ends in time, with its session, or with the lock', () => {
    for (const reader of [A, B]) acquire(reader, SHARED);
    upgrade(A, { waitUntilMs: 1_500 });
    acquire(C, SHARED);
    view.timeMs = 2_000;
    acquire(D, SHARED);
    expect(told).toEqual(['1/t LOCK_TIMEOUT', '3/t granted 6 1']);
    upgrade(B);
    end(B);
    expect(told).toEqual(['2/t SESSION_EXPIRED']);
    upgrade(C);
    expect(release(C)).toMatch('released');
    expect(told).toEqual(['3/t LOCK_CANCELED']);
    for (const owner of [A, D]) release(owner);
    expectNothingLeft();
  });

  it('only a holder upgrades or downgrades', () => {
    acquire(A, SHARED);
    expect(upgrade(B)).toBe('LOCK_NOT_HELD');
    expect(downgrade(B)).toBe('LOCK_NOT_HELD');
    expect(upgrade(A)).toBe('granted 5 1');
    expect(upgrade(A, { attempt: 5 })).toBe('granted 5 1');
  });

  it('levels stay over upgrade and downgrade', () => {
    acquire(A, SHARED);
    acquire(A, SHARED, { attempt: 2 });
    expect(upgrade(A, { attempt: 3 })).toBe('granted 4 2');
    expect(acquire(A, SHARED, { attempt: 4 })).toBe('granted 4 3');
    expect(downgrade(A, 4)).toBe('granted 6 3');
  });
});

it('a cancel of an earlier upgrade that comes when no mark is left of it ends no hold (U4)', () => {
  acquire(A, SHARED);
  acquire(B, SHARED);
  upgrade(A);
  cancel(A, 2);
  view.timeMs += 10_000;
  upgrade(A, { attempt: 3 });
  release(B);
  expect(cancel(A, 2)).toBe('canceled false');
  expect(state()).toMatchObject({ holders: [{ owner: shown(A), mode: 'exclusive' }] });
});

describe('semaphores', () => {
  it('permits are given as long as there are enough, and then in order', () => {
    expect([acquire(A, permits(2)), acquire(B, permits(2)), acquire(C, permits(1))]).toEqual([
      'granted 2 1',
      'queued',
      'queued',
    ]);
    expect(state()).toMatchObject({
      kind: 'semaphore',
      permits: 2,
      capacity: 3,
      waiters: [{ permits: 2 }, { permits: 1 }],
    });
    release(A);
    expect(told).toEqual(['2/t granted 5 1', '3/t granted 5 1']);
    release(B);
    release(C);
    expectNothingLeft();
  });

  it('more permits than there are is refused, at once or when the capacity was lowered', () => {
    expect(acquire(A, permits(4))).toBe('LOCK_PERMITS_EXCEEDED');
    expectNothingLeft();
    acquire(A, permits(2));
    acquire(B, permits(3));
    acquire(C, permits(1));
    expect(setCapacity(2)).toBe('capacity 2 2');
    expect(told).toEqual(['2/t LOCK_PERMITS_EXCEEDED']);
    release(A);
    expect(told).toEqual(['3/t granted 7 1']);
    expect(acquire(D, permits(3))).toBe('LOCK_PERMITS_EXCEEDED');
  });

  it('who wants more than a lowered capacity is refused at once, wherever it stands, and those behind go on', () => {
    acquire(A, permits(4, 4));
    acquire(B, permits(4, 4));
    acquire(C, permits(1, 4));
    acquire(D, permits(4, 4));
    acquire({ ...of(E), token: 'late' }, permits(4, 4), { waitUntilMs: view.timeMs + 10 });
    view.timeMs += 20;
    expect(setCapacity(3)).toBe('capacity 4 3');
    expect(told).toEqual(['2/t LOCK_PERMITS_EXCEEDED', '4/t LOCK_PERMITS_EXCEEDED', '5/late LOCK_TIMEOUT']);
    expect(state()).toMatchObject({ waiterCount: 1, waiters: [{ permits: 1 }] });
    release(A);
    expect(told).toEqual(['3/t granted 8 1']);
    expect(setCapacity(5)).toBe('capacity 1 5');
    expect(acquire(B, permits(4, 4), { attempt: 2 })).toBe('granted 10 1');
  });

  it('a semaphore that many wait for refuses those that want too much, over all pages of its queue', () => {
    acquire(A, permits(2, 2));
    const waiters = Array.from({ length: 700 }, (_, i) => ({ ...of(B), token: `w${String(i).padStart(3, '0')}` }));
    for (const [i, waiter] of waiters.entries()) acquire(waiter, permits(1 + (i % 2), 2));
    setCapacity(1);
    expect(told).toEqual(waiters.filter((_, i) => i % 2 === 1).map(({ token }) => `2/${token} LOCK_PERMITS_EXCEEDED`));
    expect(state()?.waiterCount).toBe(350);
  });

  it('a higher capacity lets in who waits; a lower one takes nothing from who holds', () => {
    acquire(A, permits(2, 2));
    acquire(B, permits(2, 2));
    expect(setCapacity(4)).toBe('capacity 4 4');
    expect(told).toEqual(['2/t granted 4 1']);
    expect(setCapacity(1)).toBe('capacity 4 1');
    expect(acquire(C, permits(1, 9))).toBe('queued');
    release(A);
    expect(told).toEqual([]);
    release(B);
    expect(told).toEqual(['3/t granted 8 1']);
  });

  it('a capacity that was set stays when nobody uses the semaphore, until it is forgotten', () => {
    expect(setCapacity(2)).toBe('capacity 0 2');
    expect(state()).toMatchObject({ kind: 'semaphore', holderCount: 0, capacity: 2 });
    expect(acquire(A, permits(3, 9))).toBe('LOCK_PERMITS_EXCEEDED');
    expect(acquire(A)).toBe('LOCK_KIND_MISMATCH');
    acquire(A, permits(2, 9));
    release(A);
    expect(state()?.capacity).toBe(2);
    expect(setCapacity(0)).toBe('capacity 0 0');
    expectNothingLeft();
  });

  it('permits come back with the end of the session', () => {
    acquire(A, permits(3));
    acquire(B, permits(1));
    end(A);
    expect(told).toEqual(['2/t granted 4 1']);
  });

  it('a holder enters again without further permits', () => {
    acquire(A, permits(2));
    expect(acquire(A, permits(2), { attempt: 2 })).toBe('granted 2 2');
    expect(state()?.permits).toBe(2);
  });

  it('a hand-over costs the same with 10 waiters as with 2,000', () => {
    const cost = (waiters: number) => {
      view = new MemoryView();
      for (const owner of OWNERS) view.begin(of(owner).session);
      for (let i = 0; i < waiters; i++) acquire({ ...of(A), token: `w${i}` }, permits(1, 1));
      view.resetCalls();
      release({ ...of(A), token: 'w0' });
      return { ...view.calls };
    };
    expect(cost(2_000)).toEqual(cost(10));
  });
});

describe('a name is of one kind while it is used', () => {
  it('a lock is no semaphore, and the other way round', () => {
    acquire(A, SHARED);
    expect(acquire(B, permits(1))).toBe('LOCK_KIND_MISMATCH');
    expect(setCapacity(3)).toBe('LOCK_KIND_MISMATCH');
    release(A);
    acquire(A, permits(1));
    expect([acquire(B), acquire(B, SHARED), upgrade(A), downgrade(A)]).toEqual(new Array(4).fill('LOCK_KIND_MISMATCH'));
    release(A);
    expect(acquire(B)).toMatch('granted');
  });

  it('who knows exclusive locks only is told of all as such', () => {
    acquire(A, permits(1));
    acquire(B, permits(3));
    const shown = queryLocks(view, { type: 'show', lock: LOCK });
    expect(shown).toMatchObject({
      state: { kind: 'exclusive', holders: [{ owner: publicOwner(of(A)), mode: 'exclusive' }], waiterCount: 1 },
    });
  });
});
