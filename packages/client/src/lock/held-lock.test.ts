import { SeededRandom, ServiceError, silentLogger, utf8 } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import type { LockCommand, LockResult } from '@remora/lock';
import type { Command, CommandResult, Done, PipeReply } from '@remora/protocol';
import { expect, test } from 'vitest';
import { Tracing } from '../observe/tracing.ts';
import { Owners } from '../session/owner.ts';
import type { Session } from '../session/session.ts';
import type { Requester } from '../transport/requester.ts';
import type { AcquireRequest } from './acquire.ts';
import { type AcquireWhat, acquireLock } from './acquire-lock.ts';
import type { AcquireOptions } from './acquire-options.ts';
import type { LockDeps } from './lock-deps.ts';

const ID: AcquireRequest['lock'] = { namespace: 'n', name: utf8('a') };
const SHARED = { token: 't', as: { type: 'shared' } } as const;
const GRANTED: LockResult = { type: 'granted', version: 7, depth: 1, lockTimeMs: 0 };
const LOST = new ServiceError('UNKNOWN_OUTCOME', 'the answer was lost');

/** A client whose commands wait for their answers. */
function client() {
  const clock = new ManualClock();
  const sent: { readonly command: LockCommand; readonly answer: (how: ServiceError | LockResult) => void }[] = [];
  let attempts = 0;
  const sendCommand = (command: Command, _options: unknown, done: Done<PipeReply<CommandResult>>) => {
    if (command.type !== 'lock') throw new Error(`not a command of a lock: ${command.type}`);
    const answer = (how: ServiceError | LockResult): void => {
      if (how instanceof ServiceError) done(how, undefined);
      else done(undefined, { result: { type: 'lock', result: how } } as PipeReply<CommandResult>);
    };
    sent.push({ command: command.command, answer });
    return { cancel() {}, attempts: 1, gateway: '' };
  };
  const requester = {
    ports: {
      ...{ clock, random: new SeededRandom(1), logger: silentLogger },
      liveness: { hold() {}, release() {} },
    },
    ...{ closed: false, sendCommand },
    command: (command: Command) =>
      new Promise((resolve, reject) => {
        sendCommand(command, {}, (error, reply) => (error === undefined ? resolve(reply) : reject(error)));
      }),
  } as unknown as Requester;
  const session = {
    ref: { lease: 1n, incarnation: 1 },
    ...{ owners: new Owners(), alive: true, lossReason: undefined, state: 'active' },
    ...{ check() {}, addLossListener: () => 0, removeLossListener() {}, beforeClose: () => () => {} },
  } as unknown as Session;
  const deps: Partial<LockDeps> = {
    ...{ requester, session: () => session, nextAttempt: () => ++attempts, requestTimeoutMs: 5_000 },
    tracing: new Tracing(undefined, { onFailure: () => {} }),
    grants: { watch: () => () => {} } as unknown as LockDeps['grants'],
  };
  const acquire = ({ as, ...options }: AcquireOptions & AcquireWhat = SHARED): ReturnType<typeof acquireLock> =>
    acquireLock(deps as LockDeps, ID, options, as && { as });
  /** Answers the command that was sent last. */
  const answer = async (how: ServiceError | LockResult): Promise<void> => {
    sent.at(-1)?.answer(how);
    for (let turn = 0; turn < 10; turn++) await Promise.resolve();
  };
  return {
    clock,
    acquire,
    answer,
    last: () => sent.at(-1)?.command,
    types: () => sent.map(({ command }) => command.type),
  };
}

const LOSING = [
  {
    name: 'a downgrade',
    lose: (held: Awaited<ReturnType<typeof acquireLock>>) => held.downgrade(),
    commands: ['downgrade'],
  },
  {
    name: 'an upgrade, given up by a downgrade,',
    lose: (held: Awaited<ReturnType<typeof acquireLock>>) => held.upgrade({ wait: 0 }),
    commands: ['acquire', 'downgrade'],
  },
];

test.each(LOSING)(
  'after $name whose answer was lost the owner acquires anew only once it has given back what it had (W1)',
  async ({ lose, commands }) => {
    const { acquire, answer, types } = client();
    const first = acquire();
    await answer(GRANTED);
    const lost = lose(await first).catch((error: ServiceError) => error.code);
    for (const _ of commands) await answer(LOST);
    expect(await lost).toBe('UNKNOWN_OUTCOME');
    const second = acquire();
    expect(types()).toEqual(['acquire', ...commands, 'release']);
    await answer({ type: 'released', depth: 0, version: 7 });
    expect(types()).toEqual(['acquire', ...commands, 'release', 'acquire']);
    await answer({ ...GRANTED, version: 9 });
    expect(await second).toMatchObject({ version: 9, state: 'active', depth: 1 });
  },
);

test('a re-entry that is granted anew, as the lock was taken away, brings no data that would replace what was kept since', async () => {
  const { acquire, answer, last, types } = client();
  const first = acquire({ token: 't', data: 'as it was at first', keepData: true, lockDelay: 1_000 });
  await answer(GRANTED);
  const held = await first;
  const again = held.acquire().catch((error: ServiceError) => error.code);
  expect(last()).toMatchObject({ type: 'acquire', attempt: 2, data: new Uint8Array() });
  expect(Object.keys(last() ?? {})).not.toContain('keepData');
  expect(Object.keys(last() ?? {})).not.toContain('delayMs');
  await answer({ ...GRANTED, version: 12 });
  expect(types()).toEqual(['acquire', 'acquire', 'cancel']);
  await answer({ type: 'canceled', released: true });
  expect([await again, held.state]).toEqual(['LOCK_NOT_HELD', 'lost']);
});

test('a lock that was taken away takes back an asking of it that may be under way: that would be granted to nobody (A2)', async () => {
  const { clock, acquire, answer, last, types } = client();
  const first = acquire();
  await answer(LOST);
  clock.advance(1_000);
  await answer(GRANTED);
  const said = (await first).setData('x').catch((error: ServiceError) => error.code);
  await answer({ type: 'refused', code: 'LOCK_NOT_HELD', message: 'nobody holds the lock' });
  expect([await said, types()]).toEqual(['LOCK_NOT_HELD', ['acquire', 'acquire', 'setData', 'cancel']]);
  expect(last()).toMatchObject({ attempt: 1 });
  const second = acquire();
  expect(last()).toMatchObject({ type: 'cancel' });
  await answer({ type: 'canceled', released: false });
  expect(last()).toMatchObject({ type: 'acquire', attempt: 2 });
  await answer({ ...GRANTED, version: 9 });
  expect(await second).toMatchObject({ version: 9, state: 'active' });
});

test('a lock that was taken away, and was asked for once, has nothing to take back', async () => {
  const { acquire, answer, types } = client();
  const first = acquire();
  await answer(GRANTED);
  const said = (await first).setData('x').catch((error: ServiceError) => error.code);
  await answer({ type: 'refused', code: 'LOCK_NOT_HELD', message: 'nobody holds the lock' });
  expect([await said, types()]).toEqual(['LOCK_NOT_HELD', ['acquire', 'setData']]);
});

test('who has the lock alone upgrades it without asking: given up, that would have left it shared', async () => {
  const { acquire, answer, types } = client();
  const first = acquire({ token: 't' });
  await answer(GRANTED);
  const held = await first;
  const giveUp = new AbortController();
  const upgraded = held.upgrade({ signal: giveUp.signal });
  giveUp.abort();
  expect(await upgraded).toMatchObject({ mode: 'exclusive', version: 7, state: 'active' });
  expect(types()).toEqual(['acquire']);
});

test('of a lock that one handle has lost or abandoned no other handle of its owner thinks that it is held', async () => {
  const { acquire, answer, types } = client();
  const [first, second] = [acquire(), acquire()];
  await answer(GRANTED);
  await answer({ ...GRANTED, depth: 2 });
  const [one, other] = [await first, await second];
  const { signal } = other;
  const lost = one.downgrade().catch((error: ServiceError) => error.code);
  await answer(LOST);
  expect([await lost, one.state, other.state, signal.aborted]).toEqual(['UNKNOWN_OUTCOME', 'lost', 'lost', true]);
  expect(() => other.throwIfLost()).toThrow(expect.objectContaining({ code: 'UNKNOWN_OUTCOME' }));
  await answer({ type: 'released', depth: 0, version: 7 });
  await other.release();
  expect(types()).toEqual(['acquire', 'acquire', 'downgrade', 'release']);
});

test('a handle that was given back has no part in what becomes of the others', async () => {
  const { acquire, answer } = client();
  const [first, second] = [acquire(), acquire()];
  await answer(GRANTED);
  await answer({ ...GRANTED, depth: 2 });
  const [one, other] = [await first, await second];
  const released = one.release();
  await answer({ type: 'released', depth: 1, version: 7 });
  await released;
  expect([one.state, other.state]).toEqual(['released', 'active']);
  const said = other.setData('x').catch((error: ServiceError) => error.code);
  await answer({ type: 'refused', code: 'LOCK_NOT_HELD', message: 'nobody holds the lock' });
  expect([await said, one.state, other.state]).toEqual(['LOCK_NOT_HELD', 'released', 'lost']);
  expect(() => one.throwIfLost()).toThrow('the lock was released');
});
