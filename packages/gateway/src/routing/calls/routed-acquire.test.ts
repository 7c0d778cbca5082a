import { InvariantError, SeededRandom, ServiceError } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import type { AcquireAs, LockCommand, LockResult } from '@remora/lock';
import { expect, test } from 'vitest';
import { CLUSTER } from '../../authorisation/clearance.ts';
import type { BackendReply, RequestTerms } from '../../backend.ts';
import { type AcquireDeps, acquireStateAfter, RoutedAcquire } from './routed-acquire.ts';
import { WaitSlots } from './wait-slots.ts';

type Acquire = Extract<LockCommand, { readonly type: 'acquire' }>;

const DEADLINE_MS = 10_000;
const GRANTED: LockResult = { type: 'granted', version: 9, depth: 1, lockTimeMs: 0 };
const CANCELED: LockResult = { type: 'refused', code: 'LOCK_CANCELED', message: 'waits no longer' };

/**
 * A range at which the first acquire joins the queue, and that refuses commands after their deadline; the test ends the
 * wait.
 */
class AcquireBed {
  readonly clock = new ManualClock();
  readonly asked: RequestTerms[] = [];
  readonly seen: string[] = [];
  endWait: (result: LockResult) => void = () => {};
  /** Whether the range answers all acquires but the first only when the test says so. */
  isSlow = false;
  answerLate: () => void = () => {};
  stopped = 0;
  readonly #deps: AcquireDeps = {
    ...{ clock: this.clock, random: new SeededRandom(1), waits: new WaitSlots(1, () => {}) },
    command: (_clearance, _command, options, done) => {
      this.asked.push(options);
      const isLate = (options.deadlineMs ?? Number.POSITIVE_INFINITY) < this.clock.monotonicMs();
      const result = this.asked.length === 1 ? ({ type: 'queued', position: 1 } as const) : GRANTED;
      const answer = (): void => done(undefined, replyOf({ type: 'lock', result }));
      if (isLate) done(new ServiceError('DEADLINE_EXCEEDED', 'it came after its deadline'), undefined);
      else if (this.isSlow && this.asked.length > 1) this.answerLate = answer;
      else answer();
      return () => void this.stopped++;
    },
    commandAsItIs: () => () => {},
    query: (_clearance, _query, _options, done) => {
      this.endWait = (result) => done(undefined, replyOf({ type: 'lockAwait', result }));
      return () => {};
    },
  };

  acquire(as: AcquireAs): RoutedAcquire {
    const command: Acquire = {
      ...{ type: 'acquire', lock: { namespace: 'n', name: Buffer.from('l') }, as, attempt: 1, depthMax: 1 },
      ...{ owner: { session: { lease: 1n, incarnation: 1 }, token: 't' }, data: Buffer.alloc(0) },
      ...{ wait: true, waitUntilMs: 0, deadlineMs: 0 },
    };
    const options = { requestId: 'r', timeoutMs: DEADLINE_MS, deadlineMs: DEADLINE_MS, waitMs: 60_000 };
    const request = new RoutedAcquire(this.#deps, command, { options, clearance: CLUSTER }, (error, reply) => {
      const result = reply?.result.type === 'lock' ? reply.result.result : undefined;
      this.seen.push(error?.code ?? result?.type ?? 'nothing');
    });
    request.start();
    return request;
  }
}

function replyOf<Result>(result: Result): BackendReply<Result> {
  return { result, revision: 9, raftTerm: 1 };
}

const rows: { name: string; as: AcquireAs; end: LockResult }[] = [
  { name: 'an upgrade that was granted', as: { type: 'upgrade' }, end: GRANTED },
  { name: 'a wait for permits that was canceled', as: { type: 'permits', permits: 1, capacity: 1 }, end: CANCELED },
];
test.each(rows)('$name is asked about even after the deadline of the request', ({ as, end }) => {
  const bed = new AcquireBed();
  bed.acquire(as);
  bed.clock.advance(DEADLINE_MS + 2_000);
  bed.endWait(end);
  expect(bed.seen).toEqual(['granted']);
  expect(bed.asked.map(({ requestId, deadlineMs }) => [requestId, deadlineMs])).toEqual([
    ['r', DEADLINE_MS],
    [undefined, undefined],
  ]);
});

test.each(rows)('$name is not answered once its caller has given up while the lock is asked again', ({ as, end }) => {
  const bed = new AcquireBed();
  bed.isSlow = true;
  const request = bed.acquire(as);
  bed.endWait(end);
  expect(bed.asked.length).toBe(2);
  request.cancel();
  request.cancel();
  bed.answerLate();
  bed.clock.advance(100_000);
  expect([bed.seen, bed.stopped]).toEqual([[], 1]);
});

test('an event that is not legal in the state of an acquire is a broken invariant (RA1)', () => {
  expect(acquireStateAfter('asking', 'queued')).toBe('waiting');
  for (const event of ['answer', 'cancel', 'queued', 'resume'] as const) {
    expect(() => acquireStateAfter('answered', event)).toThrow(InvariantError);
    expect(() => acquireStateAfter('abandoned', event)).toThrow(InvariantError);
  }
  expect(() => acquireStateAfter('asking', 'resume')).toThrow("'resume' is no event of an acquire that is 'asking'");
  expect(() => acquireStateAfter('leaving', 'queued')).toThrow(InvariantError);
});

test('the time to wait begins when the lock is asked for, and not when its queue is joined (RA3)', () => {
  const clock = new ManualClock();
  const seen: string[] = [];
  const asked: number[] = [];
  const deps: AcquireDeps = {
    ...{ clock, random: new SeededRandom(1), waits: new WaitSlots(1, () => {}), commandAsItIs: () => () => {} },
    command: (_clearance, _command, _options, done) => {
      const joined = replyOf({ type: 'lock', result: { type: 'queued', position: 1 } } as const);
      clock.setTimer(4_000, () => done(undefined, joined)); // an election
      return () => {};
    },
    query: (_clearance, _query, { timeoutMs }, done) => {
      asked.push(timeoutMs);
      clock.setTimer(timeoutMs, () => done(new ServiceError('DEADLINE_EXCEEDED', 'nothing happened'), undefined));
      return () => {};
    },
  };
  const command: Acquire = {
    ...{ type: 'acquire', lock: { namespace: 'n', name: Buffer.from('l') }, attempt: 1, depthMax: 1 },
    ...{ owner: { session: { lease: 1n, incarnation: 1 }, token: 't' }, data: Buffer.alloc(0) },
    ...{ wait: true, waitUntilMs: 0, deadlineMs: 0 },
  };
  const options = { requestId: 'r', timeoutMs: DEADLINE_MS, waitMs: 5_000 };
  new RoutedAcquire(deps, command, { options, clearance: CLUSTER }, (error) => {
    seen.push(`${error?.code} at ${clock.monotonicMs()}`);
  }).start();
  const beganMs = clock.monotonicMs();
  clock.advance(20_000);
  expect([asked, seen]).toEqual([[1_000], [`LOCK_TIMEOUT at ${beganMs + 5_000}`]]);
});
