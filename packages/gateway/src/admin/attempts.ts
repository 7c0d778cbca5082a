import { type Clock, type ErrorCode, type Random, ServiceError } from '@remora/base';
import type { CallHandle, Done } from '@remora/protocol';

export interface AttemptPorts {
  readonly clock: Clock;
  readonly random: Random;
}

const ATTEMPT_MS = 1_500;
const PAUSE_MIN_MS = 10;
/** Short compared to an election, for which most of these attempts wait. */
const PAUSE_MAX_MS = 20;
/** Errors after which another node, or a later attempt, may succeed. */
const WORTH_REPEATING: ReadonlySet<ErrorCode> = new Set([
  'NOT_LEADER',
  'UNAVAILABLE',
  'UNKNOWN_OUTCOME',
  'STALE_EPOCH',
]);

/** One attempt, with a time-out. */
type Attempt<Reply> = (timeoutMs: number, done: Done<Reply>) => CallHandle;

/** A repeated request. */
export interface Attempts<Reply> {
  readonly whom: string;
  readonly timeoutMs: number;
  readonly attempt: Attempt<Reply>;
  /** Whether it changes something: once an answer was lost, a later refusal does not mean that nothing was done. */
  readonly changes: boolean;
  /** Not repeated once an answer was lost: a second time it would be refused because of the first. */
  readonly once?: boolean;
}

/**
 * Repeats an attempt, with growing pauses, until it is answered or finally refused, or the time is over. Then it
 * rejects with `UNAVAILABLE`, which names `whom` and has the last error as its cause, or with `UNKNOWN_OUTCOME` if it
 * is a change and an answer was lost. Only for requests that may take effect twice, unless it is to be sent `once`.
 */
export async function untilAnswered<Reply>(ports: AttemptPorts, attempts: Attempts<Reply>): Promise<Reply> {
  const { whom, timeoutMs, attempt, changes, once = false } = attempts;
  const endsMs = ports.clock.monotonicMs() + timeoutMs;
  let lost = false;
  for (let tries = 0; ; tries++) {
    const remainingMs = endsMs - ports.clock.monotonicMs();
    const answer = await one(attempt, Math.max(1, Math.min(ATTEMPT_MS, remainingMs)));
    if (!(answer instanceof ServiceError)) return answer.reply;
    lost ||= changes && answer.code === 'UNKNOWN_OUTCOME';
    if (!WORTH_REPEATING.has(answer.code) || (once && lost)) throw lost ? mayBeDone(whom, answer) : answer;
    const ceilingMs = Math.min(PAUSE_MAX_MS, PAUSE_MIN_MS * 2 ** Math.min(tries, 4));
    const pauseMs = ceilingMs / 2 + ports.random.int(Math.ceil(ceilingMs / 2));
    if (ports.clock.monotonicMs() + pauseMs >= endsMs) {
      if (lost) throw mayBeDone(whom, answer);
      throw new ServiceError('UNAVAILABLE', `${whom} did not answer in time: ${answer.message}`, { cause: answer });
    }
    await pause(ports.clock, pauseMs);
  }
}

function mayBeDone(whom: string, cause: ServiceError): ServiceError {
  const message = `an answer of ${whom} was lost, so the request may have been carried out; the next attempt failed: ${cause.message}`;
  return new ServiceError('UNKNOWN_OUTCOME', message, { cause });
}

function one<Reply>(attempt: Attempt<Reply>, timeoutMs: number): Promise<ServiceError | { readonly reply: Reply }> {
  return new Promise((resolve) => {
    attempt(timeoutMs, (error, reply) => resolve(error ?? { reply: reply as Reply }));
  });
}

export function pause(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => {
    clock.setTimer(ms, resolve);
  });
}
