import { utf8 } from '@remora/base';
import { beforeEach, describe, expect, it } from 'vitest';
import { gist, noticeGist } from '../../test/gist.ts';
import { MemoryView } from '../../test/memory-view.ts';
import {
  applyLockCommand,
  type LockCommand,
  type LockId,
  type LockState,
  type Owner,
  ownerStatus,
  publicOwner,
  queryLocks,
  sessionEnded,
} from '../index.ts';

const LOCK: LockId = { namespace: 'default', name: utf8('import') };
const A: Owner = { session: { lease: 1n, incarnation: 1 }, token: 't' };
const B: Owner = { session: { lease: 2n, incarnation: 1 }, token: 't' };

let view: MemoryView;
let told: string[];

beforeEach(() => {
  view = new MemoryView();
  told = [];
  for (const { session } of [A, B]) view.begin(session);
});

/** The result in short; what others are told goes into `told`. */
function apply(command: LockCommand): string {
  view.revision += 1;
  const { result, notices } = applyLockCommand(view, command);
  told = notices.map(noticeGist);
  return gist(result);
}

type Acquire = Extract<LockCommand, { readonly type: 'acquire' }>;

function acquire(owner: Owner, data: string, more: Partial<Acquire> = {}): string {
  const limits = { wait: true, waitUntilMs: 0, deadlineMs: view.timeMs + 5_000, depthMax: 3 };
  return apply({ type: 'acquire', lock: LOCK, owner, data: utf8(data), attempt: 1, ...limits, ...more });
}

const keeping = (owner: Owner, data: string, more: Partial<Acquire> = {}) =>
  acquire(owner, data, { keepData: true, ...more });
const setData = (owner: Owner, version: number, data: string) =>
  apply({ type: 'setData', lock: LOCK, owner, version, data: utf8(data) });
const release = (owner: Owner) => apply({ type: 'release', lock: LOCK, owner, all: true, deadlineMs: 0, attempt: 99 });

function end({ session }: Owner): void {
  view.revision += 1;
  view.end(session);
  told = view.attachedLocks(session).flatMap((lock) => sessionEnded(view, session, lock).notices.map(noticeGist));
}

function state(): LockState | undefined {
  const shown = queryLocks(view, { type: 'show', lock: LOCK, allKinds: true });
  return shown.type === 'show' ? shown.state : undefined;
}

const shown = () => state()?.holders.map(({ data }) => Buffer.from(data).toString());
const kept = () => Buffer.from(state()?.keptData ?? utf8('')).toString();

it('how deep a hold is can be said by its owner, under the version of the grant, as often as it likes (D2)', () => {
  const setDepth = (owner: Owner, version: number, depth: number) =>
    apply({ type: 'setDepth', lock: LOCK, owner, version, depth });
  acquire(A, 'a');
  acquire(B, 'b');
  expect([setDepth(A, 2, 3), setDepth(A, 2, 3), setDepth(A, 2, 2)]).toEqual([
    'granted 2 3',
    'granted 2 3',
    'granted 2 2',
  ]);
  expect([setDepth(A, 1, 3), setDepth(B, 2, 3)]).toEqual(['LOCK_NOT_HELD', 'LOCK_NOT_HELD']);
  expect(state()).toMatchObject({ holders: [{ depth: 2, data: utf8('a') }], waiterCount: 1 });
  release(A);
  expect(told).toEqual(['2/t granted 9 1']);
  expect(setDepth(A, 2, 2)).toBe('LOCK_NOT_HELD');
  end(A);
  expect(setDepth(A, 2, 2)).toBe('SESSION_EXPIRED');
});

describe('data of a hold', () => {
  it('are changed by their owner, and by nobody else, under the version of the grant', () => {
    acquire(A, 'at first');
    expect(setData(A, 2, 'later')).toBe('granted 2 1');
    expect(shown()).toEqual(['later']);
    expect(setData(B, 2, 'x')).toBe('LOCK_NOT_HELD');
    expect(setData(A, 1, 'x')).toBe('LOCK_NOT_HELD');
    release(A);
    acquire(A, 'again', { attempt: 10 });
    expect(setData(A, 2, 'late')).toBe('LOCK_NOT_HELD');
    end(A);
    expect(setData(A, 7, 'dead')).toBe('SESSION_EXPIRED');
    expect(state()).toBeUndefined();
  });

  it('stay the same over re-entry, upgrade and downgrade, and are those of each who shares the lock', () => {
    acquire(A, 'a', { as: { type: 'shared' } });
    acquire(B, 'b', { as: { type: 'shared' } });
    setData(B, 3, 'c');
    acquire(A, 'ignored', { as: { type: 'shared' }, attempt: 2 });
    expect(shown()).toEqual(['a', 'c']);
    release(B);
    acquire(A, '', { as: { type: 'upgrade' }, attempt: 3 });
    expect(shown()).toEqual(['a']);
    apply({ type: 'downgrade', lock: LOCK, owner: A, attempt: 3 });
    expect(shown()).toEqual(['a']);
  });
});

describe('data that are kept', () => {
  it.each([
    { name: 'a release', ends: () => release(A) },
    { name: 'the end of its session', ends: () => end(A) },
    { name: 'force', ends: () => apply({ type: 'forceRelease', lock: LOCK }) },
    { name: 'a cancel', ends: () => apply({ type: 'cancel', lock: LOCK, owner: A, deadlineMs: 0, attempt: 1 }) },
  ])('are what the hold said last, when it ended by $name', ({ ends }) => {
    keeping(A, 'first');
    setData(A, 2, 'last');
    ends();
    expect([kept(), state()?.holderCount, state()?.kind]).toEqual(['last', 0, 'exclusive']);
  });

  it('are told to who is granted the lock next, also by hand-over, and to who asks again', () => {
    keeping(A, 'left');
    acquire(B, '');
    release(A);
    expect(told).toEqual(['2/t granted 4 1 left left']);
    expect(acquire(B, '')).toBe('granted 4 1 left left');
    expect(gist(ownerStatus(view, LOCK, B))).toBe('granted 4 1 left left');
  });

  it('are what the next hold that keeps data begins with, unless it brings its own', () => {
    keeping(A, 'left');
    release(A);
    keeping(B, '');
    expect(shown()).toEqual(['left']);
    end(B);
    expect(kept()).toBe('left');
    keeping(A, 'own', { attempt: 10 });
    expect(shown()).toEqual(['own']);
    release(A);
    expect(kept()).toBe('own');
  });

  it('are left alone by holds that keep none, and gone when a hold that keeps them says nothing any more', () => {
    keeping(A, 'left');
    release(A);
    acquire(B, 'of no interest');
    release(B);
    expect(kept()).toBe('left');
    keeping(A, '', { attempt: 10 });
    setData(A, view.revision, '');
    expect(kept()).toBe('left');
    release(A);
    expect(view.rows).toEqual([]);
  });

  it('are forgotten when told so, by whom ever, and the lock with them when nobody uses it', () => {
    keeping(A, 'left');
    release(A);
    expect(apply({ type: 'forget', lock: LOCK })).toBe('forgotten true');
    expect(view.rows).toEqual([]);
    expect(apply({ type: 'forget', lock: LOCK })).toBe('forgotten false');
    expect(view.rows).toEqual([]);
    keeping(A, 'held', { attempt: 10 });
    expect(apply({ type: 'forget', lock: LOCK })).toBe('forgotten false');
    expect(shown()).toEqual(['held']);
  });

  it('are not shown to who knows only exclusive locks', () => {
    keeping(A, 'left');
    release(A);
    const old = queryLocks(view, { type: 'show', lock: LOCK });
    expect(old).toMatchObject({ state: { kind: 'exclusive', holders: [], keptData: undefined } });
  });
});

describe('a forced release', () => {
  const force = (more: { by?: string; reason?: string }) => apply({ type: 'forceRelease', lock: LOCK, ...more });

  it('stays on record with who did it and why, until the next one, or until it is forgotten', () => {
    acquire(A, '');
    acquire(B, '');
    force({ by: 'ops', reason: 'its host is gone' });
    const first = { atMs: 50_000, by: 'ops', reason: 'its host is gone', version: 2 };
    expect(state()).toMatchObject({ holders: [{ owner: publicOwner(B) }], forced: first });
    force({ reason: 'again' });
    expect(state()).toMatchObject({
      holderCount: 0,
      kind: 'exclusive',
      forced: { by: '', reason: 'again', version: 4 },
    });
    // One that says nothing leaves the record as it is, and so does one that finds nobody.
    acquire(A, '', { attempt: 2 });
    force({});
    expect(force({ by: 'nobody' })).toBe('LOCK_NOT_HELD');
    expect(state()).toMatchObject({ forced: { reason: 'again' } });
    expect(apply({ type: 'forget', lock: LOCK })).toBe('forgotten true');
    expect(view.rows).toEqual([]);
  });

  it('leaves nothing when nothing is said', () => {
    acquire(A, '');
    force({});
    expect(view.rows).toEqual([]);
  });
});
