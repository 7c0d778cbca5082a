import { type ErrorCode, SeededRandom, ServiceError } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import { FINAL_REFUSAL } from '@remora/protocol';
import { expect, test } from 'vitest';
import { CommandOperation } from './operation.ts';
import type { Requester } from './requester.ts';
import { retryPolicy } from './retry.ts';

/** `unsaid`: it cannot be encoded, and is thrown back. */
type Answer = ErrorCode | ServiceError | 'ok' | 'unsaid';

/** Gateways that answer one attempt after the other; the last answer is that of all further ones. */
class GatewayBed {
  readonly clock = new ManualClock();
  readonly ids = new Set<string>();
  /** What each attempt said of earlier ones. */
  readonly again: (boolean | undefined)[] = [];
  logsIn = false;
  readonly outcomes: string[] = [];
  attempts = 0;
  closed = false;
  readonly #answers: readonly Answer[];

  constructor(answers: readonly Answer[]) {
    this.#answers = answers;
  }

  /** Asks, and gives what came of it within its time. */
  outcome(): string | undefined {
    const options = { requestId: 'r1', options: { timeoutMs: 2_000 } };
    const operation = new CommandOperation(this.#requester(), { type: 'noop' }, options, (error) => {
      this.outcomes.push(error?.code ?? 'ok');
    });
    operation.start();
    this.clock.advance(5_000);
    expect(this.outcomes.length, 'it is answered once').toBe(1);
    return this.outcomes[0];
  }

  #requester(): Requester {
    const channel = {
      call: (
        _method: unknown,
        request: { requestId: string; again?: boolean },
        _options: unknown,
        done: (error?: ServiceError) => void,
      ) => {
        this.ids.add(request.requestId);
        this.again.push(request.again);
        const answer = this.#answers[Math.min(this.attempts++, this.#answers.length - 1)] ?? 'ok';
        if (answer === 'unsaid') throw new TypeError('it cannot be encoded');
        const error = typeof answer !== 'string' ? answer : new ServiceError(answer as ErrorCode, answer);
        this.clock.setTimer(1, () => done(answer === 'ok' ? undefined : error));
        return { cancel() {} };
      },
    };
    const ignored = (): void => {};
    const bed = this;
    return {
      ports: { clock: this.clock, random: new SeededRandom(1) },
      gateways: { channel, count: 2, failed: ignored, doubt: ignored, served: ignored, addressOf: () => '' },
      retry: retryPolicy(),
      rangeTimeAt: (ms: number) => ms,
      logsIn: this.logsIn,
      learn: ignored,
      get closed() {
        return bed.closed;
      },
    } as unknown as Requester;
  }
}

const DOORS: readonly ErrorCode[] = [
  'WRONG_CLUSTER',
  'NODE_CONFLICT',
  'VERSION_REFUSED',
  'UNIMPLEMENTED',
  'REQUEST_TOO_LARGE',
  'TOO_MANY_OPERATIONS',
  'INTERNAL',
  'UNAUTHENTICATED',
];

test.each(DOORS)('%s of one gateway says nothing of an attempt that another one may have brought through', (code) => {
  expect(new GatewayBed(['UNKNOWN_OUTCOME', code]).outcome()).toBe('UNKNOWN_OUTCOME');
  const bed = new GatewayBed(['UNKNOWN_OUTCOME', code, 'ok']);
  expect([bed.outcome(), bed.attempts, bed.ids.size]).toEqual(['ok', 3, 1]);
});

test.each(DOORS)('%s is the answer while nothing can have been applied', (code) => {
  const bed = new GatewayBed(['UNAVAILABLE', code]);
  expect([bed.outcome(), bed.attempts]).toEqual([code, 2]);
});

test('what a range says of the request id is the answer, whatever was lost before', () => {
  expect(new GatewayBed(['UNKNOWN_OUTCOME', 'LEASE_NOT_FOUND']).outcome()).toBe('LEASE_NOT_FOUND');
});

test('what a transaction over ranges failed for is no answer behind one that was lost: it is not remembered', () => {
  const failed = new ServiceError('LEASE_NOT_FOUND', 'there is no such lease', { details: { unremembered: true } });
  expect(new GatewayBed([failed]).outcome()).toBe('LEASE_NOT_FOUND');
  expect(new GatewayBed(['UNKNOWN_OUTCOME', failed]).outcome()).toBe('UNKNOWN_OUTCOME');
  expect(new GatewayBed(['UNKNOWN_OUTCOME', failed, 'ok']).outcome()).toBe('ok');
});

test('what was over a limit until its time was over says so, though its last attempt came too late', () => {
  expect(new GatewayBed(['RESOURCE_EXHAUSTED', 'DEADLINE_EXCEEDED']).outcome()).toBe('RESOURCE_EXHAUSTED');
  expect(new GatewayBed(['UNKNOWN_OUTCOME', 'RESOURCE_EXHAUSTED', 'DEADLINE_EXCEEDED']).outcome()).toBe(
    'UNKNOWN_OUTCOME',
  );
  expect(new GatewayBed(['RESOURCE_EXHAUSTED', 'UNAVAILABLE', 'DEADLINE_EXCEEDED']).outcome()).toBe(
    'DEADLINE_EXCEEDED',
  );
});

test('an attempt that cannot be encoded says nothing of one before it', () => {
  expect(new GatewayBed(['unsaid']).outcome()).toBe('INTERNAL');
  expect(new GatewayBed(['UNAVAILABLE', 'unsaid']).outcome()).toBe('INTERNAL');
  expect(new GatewayBed(['UNKNOWN_OUTCOME', 'unsaid']).outcome()).toBe('UNKNOWN_OUTCOME');
});

test('a command whose answer was lost has not failed because its client is closed', () => {
  const told = (first: Answer): string | undefined => {
    const bed = new GatewayBed([first]);
    bed.clock.setTimer(1, () => {
      bed.closed = true;
    });
    return bed.outcome();
  };
  expect([told('UNKNOWN_OUTCOME'), told('UNAVAILABLE')]).toEqual(['UNKNOWN_OUTCOME', 'CANCELED']);
});

test('a command says that it may have been applied before, once an answer to it was lost (R4)', () => {
  const bed = new GatewayBed(['UNAVAILABLE', 'NOT_LEADER', 'UNKNOWN_OUTCOME', 'UNAVAILABLE', 'ok']);
  bed.outcome();
  expect(bed.again).toEqual([undefined, undefined, undefined, true, true]);
});

test('a refused log-in ends a command at once, and says nothing of an earlier attempt', () => {
  const refused = new ServiceError('UNAUTHENTICATED', 'wrong password', { details: { [FINAL_REFUSAL]: true } });
  for (const [answers, expected] of [
    [[refused], 'UNAUTHENTICATED'],
    [['UNKNOWN_OUTCOME', refused], 'UNKNOWN_OUTCOME'],
  ] as const) {
    const bed = new GatewayBed(answers);
    bed.logsIn = true;
    expect([bed.outcome(), bed.attempts]).toEqual([expected, answers.length]);
  }
});

test('a command is sent again after a log-in, at most twice', () => {
  for (const [answers, expected, attempts] of [
    [['UNAUTHENTICATED', 'ok'], 'ok', 2],
    [['UNAUTHENTICATED'], 'UNAUTHENTICATED', 3],
  ] as const) {
    const bed = new GatewayBed(answers);
    bed.logsIn = true;
    expect([bed.outcome(), bed.attempts]).toEqual([expected, attempts]);
  }
});
