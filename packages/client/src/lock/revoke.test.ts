import { EMPTY_BYTES, SeededRandom, ServiceError, utf8 } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import type { HolderState, LockEvent, LockNews, LockState, Revocation } from '@remora/lock';
import { describe, expect, test } from 'vitest';
import type { Requester } from '../transport/requester.ts';
import { revokeLock } from './revoke.ts';

const LOCK = { namespace: 'n', name: utf8('a') };
const ASKED: Revocation = { revision: 7, version: 7, by: '', reason: '', untilMs: 1_000, sinceMs: 0 };

function holderOf(id: string, version: number): HolderState {
  return {
    ...{
      owner: { session: { lease: 1n, incarnation: 1 }, id },
      version,
      lockTimeMs: 0,
      data: EMPTY_BYTES,
      depth: 1,
    },
    ...{ mode: 'exclusive', permits: 0, keepsData: false, delayMs: 0, delayed: false },
  };
}

const HELD: LockState = {
  ...{ lock: LOCK, kind: 'exclusive', holders: [holderOf('a', 5)], holderCount: 1, waiters: [], waiterCount: 0 },
  ...{ permits: 0, capacity: 0, keptData: undefined, forced: undefined, passing: 0, revocation: ASKED },
};

type Shown = LockState | 'free' | 'no answer';

/** Asks for a lock, and gives what came of it when these are its news. `shown`: what it shows when the time is over. */
function outcomeAfter(...news: readonly LockNews[]): Promise<string> {
  return outcomeOf('no answer', news);
}

function outcomeOf(shown: Shown, news: readonly LockNews[]): Promise<string> {
  const clock = new ManualClock();
  const channel = {
    openStream: (_method: unknown, _request: unknown, onMessage: (message: readonly LockNews[]) => void) => {
      queueMicrotask(() => {
        if (news.length > 0) onMessage(news);
        setImmediate(() => clock.advance(1_000));
      });
      return { cancel() {} };
    },
  };
  const requester = {
    ports: {
      ...{ clock, random: new SeededRandom(1) },
      liveness: { hold() {}, release() {} },
    },
    gateways: { channel, failed() {} },
    query: async () => {
      if (shown === 'no answer') throw new ServiceError('UNAVAILABLE', 'nobody is there');
      return { result: { type: 'lock', result: { type: 'show', state: shown === 'free' ? undefined : shown } } };
    },
    command: async () => ({ result: { type: 'lock', result: { type: 'revoking', version: ASKED.version } } }),
  } as unknown as Requester;
  return revokeLock(requester, LOCK, { wait: '1s', timeoutMs: 1_000 });
}

function begin(state: LockState): LockNews {
  return { type: 'state', lock: LOCK, revision: 8, state };
}

function then(...events: readonly LockEvent[]): LockNews {
  return { type: 'events', lock: LOCK, revision: 9, events };
}

const OVER: LockEvent = { type: 'revoking', revocation: undefined };

test('a request whose time is over at the lock is declined while those who were asked hold it', async () => {
  expect(await outcomeAfter(begin(HELD), then(OVER)), 'told by the next command').toBe('declined');
  const { revocation: _, ...lapsed } = HELD;
  expect(await outcomeAfter(begin(lapsed)), 'told by the state, after a broken connection').toBe('declined');
});

test('a request is met when those who were asked hold the lock no longer, whoever has it by then', async () => {
  const { revocation: _, ...others } = HELD;
  expect(await outcomeAfter(begin({ ...others, holders: [holderOf('b', 8)] }))).toBe('released');
  const delayed = { ...holderOf('a', 5), delayed: true };
  expect(await outcomeAfter(begin({ ...others, holders: [delayed] }))).toBe('released');
});

test('who holds the lock in another way since is asked as before', async () => {
  const converted: LockNews = begin({
    ...HELD,
    holders: [holderOf('a', 8)],
    revocation: { ...ASKED, version: 8 },
  });
  expect(await outcomeAfter(converted, then(OVER))).toBe('declined');
});

test('what was not told by events is looked for when the time is over', async () => {
  const { revocation: _, ...others } = HELD;
  const next = { ...others, holders: [holderOf('b', 8)] };
  expect(await outcomeOf(next, [])).toBe('released');
  expect(await outcomeOf('free', [begin(HELD)])).toBe('released');
  expect(await outcomeOf(HELD, [])).toBe('declined');
  expect(await outcomeOf(others, [begin(HELD)])).toBe('declined');
  expect(await outcomeOf('no answer', [begin(HELD)])).toBe('declined');
});

describe('when somebody else asks anew', () => {
  const reader = (token: string, version: number): HolderState => ({ ...holderOf(token, version), mode: 'shared' });
  const later: Revocation = { ...ASKED, revision: 9, version: 9 };
  const shared: LockState = { ...HELD, kind: 'shared', holders: [reader('a', 5)] };
  const joined: readonly LockEvent[] = [
    { type: 'acquired', holder: reader('b', 8), waited: false },
    { type: 'revoking', revocation: later },
  ];
  const left = (token: string, version: number): LockEvent => ({
    ...{ type: 'released', owner: holderOf(token, version).owner, version, permits: 0 },
  });

  test('the request is met when those have let go of whom it was asked, whoever has joined them since', async () => {
    expect(await outcomeAfter(begin(shared), then(...joined), then(left('a', 5)))).toBe('released');
    expect(await outcomeAfter(begin(shared), then(...joined), then(left('b', 8)), then(OVER))).toBe('declined');
    expect(await outcomeOf(shared, [begin(shared), then(...joined), then(left('b', 8))])).toBe('declined');
  });

  test('those of whom it was asked are asked as before when they hold the lock in another way', async () => {
    const alone: readonly LockEvent[] = [
      { type: 'upgraded', holder: holderOf('a', 12), waited: false },
      { type: 'revoking', revocation: { ...later, version: 12 } },
    ];
    const news = [begin(shared), then(...joined), then(left('b', 8)), then(...alone)];
    expect(await outcomeAfter(...news, then(OVER))).toBe('declined');
    expect(await outcomeAfter(...news, then(left('a', 12), OVER))).toBe('released');
  });
});

test('what the lock was like before the request says nothing of what came of it', async () => {
  const before: LockNews = { type: 'state', lock: LOCK, revision: 6, state: undefined };
  expect(await outcomeAfter(before, begin(HELD), then(OVER))).toBe('declined');
  const { revocation: _, ...held } = HELD;
  const asked: LockNews = { ...then({ type: 'revoking', revocation: ASKED }), revision: 7 } as LockNews;
  expect(await outcomeAfter({ ...before, state: held }, asked, then(OVER))).toBe('declined');
});

test('a lock is not let go of while there are holders that were not named yet', async () => {
  const many: LockState = { ...HELD, kind: 'shared', holderCount: 2 };
  const [first] = HELD.holders;
  const gone: LockEvent = { type: 'released', owner: holderOf('a', 5).owner, version: first?.version ?? 0, permits: 0 };
  expect(await outcomeAfter(begin(many), then(gone, OVER))).toBe('declined');
});

test('who gives up as it is answered that the holders are asked does not wait for them', async () => {
  const giveUp = new AbortController();
  const requester = {
    ports: {
      ...{ clock: new ManualClock(), random: new SeededRandom(1) },
      liveness: { hold() {}, release() {} },
    },
    gateways: { channel: { openStream: () => ({ cancel() {} }) }, failed() {} },
    command: async () => {
      giveUp.abort();
      return { result: { type: 'lock', result: { type: 'revoking', version: ASKED.version } } };
    },
  } as unknown as Requester;
  const asked = revokeLock(requester, LOCK, { wait: '1s', timeoutMs: 1_000, signal: giveUp.signal });
  await expect(asked).rejects.toMatchObject({ code: 'CANCELED' });
});
