import { EMPTY_BYTES, SeededRandom, ServiceError, utf8 } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import type { LockResult } from '@remora/lock';
import type { Command, CommandResult, Done, PipeReply } from '@remora/protocol';
import { expect, test } from 'vitest';
import { Owners } from '../session/owner.ts';
import type { Session } from '../session/session.ts';
import type { Requester } from '../transport/requester.ts';
import { AcquireOperation, type AcquireRequest } from './acquire.ts';

const REFUSED: LockResult = { type: 'refused', code: 'RESOURCE_EXHAUSTED', message: 'too many wait' };

const REQUEST: AcquireRequest = {
  ...{ lock: { namespace: 'n', name: utf8('a') }, token: 't', attempt: 1, startedMs: 0, depthMax: 1, levelsMax: 1 },
  ...{ data: EMPTY_BYTES, keepData: false, delayMs: 0, waitMs: 60_000, signal: undefined, requestTimeoutMs: 5_000 },
};

/** Acquires where each asking is answered in turn; gives what was told, and the commands that were sent. */
async function acquiring(answers: readonly (ServiceError | LockResult)[], request = REQUEST) {
  const clock = new ManualClock();
  const sent: string[] = [];
  let asked = 0;
  const requester = {
    ports: { clock, random: new SeededRandom(1) },
    closed: false,
    sendCommand: (command: Command, _options: unknown, done: Done<PipeReply<CommandResult>>) => {
      const type = command.type === 'lock' ? command.command.type : command.type;
      sent.push(type);
      const answer: ServiceError | LockResult | undefined =
        type === 'cancel' ? { type: 'canceled', released: false } : answers[asked++];
      clock.setTimer(1, () => {
        if (answer instanceof ServiceError) done(answer, undefined);
        else done(undefined, { result: { type: 'lock', result: answer } } as PipeReply<CommandResult>);
      });
      return { cancel() {}, attempts: 1, gateway: '' };
    },
  } as unknown as Requester;
  const session = {
    ref: { lease: 1n, incarnation: 1 },
    ...{ owners: new Owners(), alive: true, lossReason: undefined },
    addLossListener: () => 0,
    removeLossListener: () => {},
  } as unknown as Session;
  const outcome = new AcquireOperation(requester, session, request).run().then(
    () => 'granted',
    (error: ServiceError) => error.code,
  );
  clock.advance(10_000);
  return { outcome: await outcome, sent };
}

test('an acquire that is refused takes back an earlier asking of it whose answer was lost: that may arrive later', async () => {
  const lost = new ServiceError('UNKNOWN_OUTCOME', 'the answer was lost');
  const { outcome, sent } = await acquiring([lost, REFUSED]);
  expect([outcome, sent]).toEqual(['RESOURCE_EXHAUSTED', ['acquire', 'acquire', 'cancel']]);
});

test('an acquire whose one asking is refused leaves nothing to take back', async () => {
  const { outcome, sent } = await acquiring([REFUSED]);
  expect([outcome, sent]).toEqual(['RESOURCE_EXHAUSTED', ['acquire']]);
});

test('who is taken out of a double barrier takes back an earlier asking whose answer was lost: it would enter again', async () => {
  const lost = new ServiceError('UNKNOWN_OUTCOME', 'the answer was lost');
  const forced: LockResult = { type: 'refused', code: 'LOCK_NOT_HELD', message: 'the lock was taken away' };
  const { outcome, sent } = await acquiring([lost, forced], { ...REQUEST, as: { type: 'enter', parties: 2 } });
  expect([outcome, sent]).toEqual(['LOCK_NOT_HELD', ['acquire', 'acquire', 'cancel']]);
});
