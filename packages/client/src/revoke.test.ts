import { EMPTY_BYTES, ManualClock, SeededRandom, utf8 } from '@remora/base';
import type { HolderState, LockEvent, LockNews, LockState, Revocation } from '@remora/lock';
import { expect, test } from 'vitest';
import type { Requester } from './requester.ts';
import { revokeLock } from './revoke.ts';

const LOCK = { namespace: 'n', name: utf8('a') };
const ASKED: Revocation = { revision: 7, version: 7, by: '', reason: '', untilMs: 1_000, sinceMs: 0 };

function holderOf(token: string, version: number): HolderState {
  return {
    ...{
      owner: { session: { lease: 1n, incarnation: 1 }, token },
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

/** Asks for a lock, and gives what came of it when these are its news. */
function outcomeAfter(...news: readonly LockNews[]): Promise<string> {
  const channel = {
    openStream: (_method: unknown, _request: unknown, onMessage: (message: readonly LockNews[]) => void) => {
      queueMicrotask(() => onMessage(news));
      return { cancel() {} };
    },
  };
  const requester = {
    ports: {
      ...{ clock: new ManualClock(), random: new SeededRandom(1) },
      liveness: { hold() {}, release() {} },
    },
    gateways: { channel, failed() {} },
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
