import { type ErrorCode, SeededRandom, ServiceError, silentLogger } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import type { CallHandle, Done, PipeReply, Query, QueryResult } from '@remora/protocol';
import { beforeEach, describe, expect, it } from 'vitest';
import { type Asks, GrantWatches } from './grant-watch.ts';

const GRANT = {
  lock: { namespace: '', name: Buffer.from('l') },
  version: 7,
  session: { lease: 1n, incarnation: 2 },
};

/** A requester whose questions are answered by the test. */
class Questions implements Asks {
  readonly clock = new ManualClock();
  readonly ports = {
    clock: this.clock,
    random: new SeededRandom(1),
    logger: silentLogger,
    connectLink: () => {
      throw new Error('nobody connects');
    },
    liveness: { hold() {}, release() {} },
  };
  asked = 0;
  canceled = 0;
  #done: Done<PipeReply<QueryResult>> | undefined;

  ask(query: Query, _timeoutMs: number, done: Done<PipeReply<QueryResult>>): CallHandle {
    expect(query).toEqual({ type: 'grantEnd', ...GRANT });
    this.asked++;
    this.#done = done;
    return { cancel: () => void this.canceled++ };
  }

  fail(code: ErrorCode): void {
    this.#done?.(new ServiceError(code, 'no'), undefined);
  }

  answer(sessionAlive: boolean): void {
    const result = { type: 'grantEnd' as const, sessionAlive };
    this.#done?.(undefined, { result, revision: 1, raftTerm: 1, rangeTimeMs: 0 });
  }
}

describe('the watch of a grant', () => {
  let questions: Questions;
  let ends: boolean[];
  let stop: () => void;
  beforeEach(() => {
    questions = new Questions();
    ends = [];
    stop = new GrantWatches(questions).watch(GRANT, { onEnd: (sessionAlive) => ends.push(sessionAlive) });
    questions.clock.advance(100);
    expect(questions.asked).toBe(1);
  });

  it('tells the end of the grant once, and asks no more', () => {
    questions.answer(true);
    expect(ends).toEqual([true]);
    questions.clock.advance(120_000);
    expect(questions.asked).toBe(1);
  });

  it.each([
    { code: 'DEADLINE_EXCEEDED', pauseMs: 0 },
    { code: 'UNAVAILABLE', pauseMs: 1_000 },
    { code: 'RESOURCE_EXHAUSTED', pauseMs: 1_000 },
    { code: 'UNIMPLEMENTED', pauseMs: 30_000 },
    { code: 'INVALID_ARGUMENT', pauseMs: 30_000 },
    { code: 'INTERNAL', pauseMs: 30_000 },
  ] as const)('asks again $pauseMs ms after $code, and hears of the end then', ({ code, pauseMs }) => {
    questions.fail(code);
    if (pauseMs > 0) questions.clock.advance(pauseMs - 1);
    expect(questions.asked).toBe(1);
    questions.clock.advance(1);
    expect(questions.asked).toBe(2);
    questions.answer(false);
    expect(ends).toEqual([false]);
  });

  it('ends when the client is closed', () => {
    questions.fail('CANCELED');
    expect(questions.clock.pendingTimers).toBe(0);
    stop();
    expect(questions).toMatchObject({ asked: 1, canceled: 0 });
  });

  it('leaves nothing behind when it is stopped, in a question or in the pause after one', () => {
    stop();
    expect(questions.canceled).toBe(1);
    const next = new GrantWatches(questions).watch(GRANT, { onEnd: () => {} });
    questions.clock.advance(100);
    questions.fail('UNIMPLEMENTED');
    next();
    expect(questions).toMatchObject({ asked: 2, canceled: 1 });
    expect(questions.clock.pendingTimers).toBe(0);
    expect(ends).toEqual([]);
  });
});
