import { utf8 } from '@remora/base';
import { beforeEach, describe, expect, it } from 'vitest';
import { MemoryView } from '../../test/memory-view.ts';
import { type AcquireAs, applyLockCommand, grantNews, type LockCommand, type Owner, queryLocks } from '../index.ts';

const lock = { namespace: 'n', name: utf8('l') };
const owner = (token: string): Owner => ({ session: { lease: 1n, incarnation: 1 }, token });
const REVOKE = { type: 'revoke', lock, by: 'ops', reason: 'späte Arbeit', forMs: 1_000 } as const;

describe('a request to let go', () => {
  let view: MemoryView;
  beforeEach(() => {
    view = new MemoryView();
    view.begin({ lease: 1n, incarnation: 1 });
  });

  /** Applies a command at the next revision, and gives that. */
  function run(command: LockCommand): number {
    view.revision += 1;
    expect(applyLockCommand(view, command).result.type).not.toBe('refused');
    return view.revision;
  }
  function acquire(token: string, as?: AcquireAs): number {
    const base = { type: 'acquire', lock, owner: owner(token), wait: true, waitUntilMs: 0, deadlineMs: 9_000 } as const;
    return run({ ...base, depthMax: 1, data: utf8(''), attempt: view.revision, ...(as === undefined ? {} : { as }) });
  }
  const release = (token: string) => run({ type: 'release', lock, owner: owner(token), all: true, deadlineMs: 0 });
  function asked(): number | undefined {
    const shown = queryLocks({ ...reader(), timeMs: view.timeMs }, { type: 'show', lock, allKinds: true });
    return shown.type === 'show' ? shown.state?.revocation?.version : undefined;
  }
  const reader = () => ({
    get: (key: Uint8Array) => view.get(key),
    scan: (start: Uint8Array, end: Uint8Array, limit: number) => view.scan(start, end, limit),
    timeMs: view.timeMs,
  });

  it('is of the grants that there are, and over with the last of them (V1, V2)', () => {
    const first = acquire('a', { type: 'shared' });
    acquire('b', { type: 'shared' });
    const revision = run(REVOKE);
    const late = acquire('c', { type: 'shared' });
    expect(grantNews(reader(), lock, { version: first, known: 0 })).toMatchObject({
      by: 'ops',
      reason: 'späte Arbeit',
    });
    expect(grantNews(reader(), lock, { version: first, known: revision })).toBeUndefined();
    expect(grantNews(reader(), lock, { version: late, known: 0 })).toBeUndefined();
    release('a');
    expect(asked()).toBe(revision);
    release('b');
    expect(asked()).toBeUndefined();
    release('c');
    expect(view.rows).toEqual([]);
  });

  it('goes with the holder who was asked, and is not of the next one (V1)', () => {
    acquire('a');
    acquire('b');
    run(REVOKE);
    const next = release('a');
    expect([asked(), grantNews(reader(), lock, { version: next, known: 0 })]).toEqual([undefined, undefined]);
  });

  it('is of those who hold the lock in another way by now, as before (V3)', () => {
    acquire('a');
    run(REVOKE);
    const shared = run({ type: 'downgrade', lock, owner: owner('a') });
    expect(asked()).toBe(shared);
    const alone = acquire('a', { type: 'upgrade' });
    expect(asked()).toBe(alone);
    expect(grantNews(reader(), lock, { version: alone, known: 0 })).toMatchObject({ by: 'ops' });
  });

  it('says nothing when its time is over, and goes with the next command (V2)', () => {
    const version = acquire('a');
    run({ ...REVOKE, forMs: 10 });
    view.timeMs += 11;
    expect([asked(), grantNews(reader(), lock, { version, known: 0 })]).toEqual([undefined, undefined]);
    const before = view.rows.length;
    acquire('b');
    expect(view.rows.length).toBe(before + 1); // a place and its owner, without the request
  });

  it('is replaced by the next one, and of a lock that nobody holds refused (V2)', () => {
    view.revision += 1;
    expect(applyLockCommand(view, REVOKE).result).toMatchObject({ code: 'LOCK_NOT_HELD' });
    expect(view.rows).toEqual([]);
    const version = acquire('a');
    const first = run(REVOKE);
    run({ ...REVOKE, by: 'other' });
    expect(grantNews(reader(), lock, { version, known: first })).toMatchObject({ by: 'other' });
  });
});
