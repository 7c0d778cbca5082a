/**
 * How workloads send requests, at which pace, and which results are allowed.
 *
 * G1. A request with the result `refused` had no effect: checks of the history verify the SDK's rule R2 by that.
 * G2. A request fails because of a fault of the environment, or with an error that answers this request. Any other
 *     error is a fault of the product.
 */
import { type ErrorCode, ServiceError, sleep } from '@remora/base';
import { Violation } from '../../common/violation.ts';
import type { ClientLife } from '../sdk-client.ts';
import type { World } from '../world.ts';

export type Answer<T> =
  | { readonly type: 'answer'; readonly value: T }
  /** Certainly without effect. */
  | { readonly type: 'refused'; readonly code: ErrorCode; readonly error: ServiceError }
  | { readonly type: 'unknown' };

const MISFORTUNES: ReadonlySet<ErrorCode> = new Set([
  'UNAVAILABLE',
  'NOT_LEADER',
  'RESOURCE_EXHAUSTED',
  'DEADLINE_EXCEEDED',
  'CANCELED',
]);
const NO_ANSWERS: readonly ErrorCode[] = [];

/** Sends a request, and counts its result. `answers`: the codes with which the cluster may answer this request. */
export async function ask<T>(
  { world, life, what }: { readonly world: World; readonly life: ClientLife; readonly what: string },
  question: () => Promise<T>,
  answers: readonly ErrorCode[] = NO_ANSWERS,
): Promise<Answer<T>> {
  const end = world.operation(life, what);
  try {
    const value = await question();
    end({ how: 'done' });
    return { type: 'answer', value };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const { code } = error;
    if (error.mayBeApplied) {
      end({ how: 'unknown', code });
      return { type: 'unknown' };
    }
    const answered = answers.includes(code);
    end({ how: answered ? 'done' : 'refused', code });
    if (!answered && !MISFORTUNES.has(code)) throw new Violation('errors are explained', `${what}: ${error.stack}`); // G2
    return { type: 'refused', code, error };
  }
}

/** Several hands of one client work concurrently, each doing one thing after another until the clients rest. */
export async function withHands(world: World, hands: number, work: (hand: number) => Promise<void>): Promise<void> {
  const one = async (hand: number): Promise<void> => {
    while (!world.resting) await work(hand);
  };
  await Promise.all(Array.from({ length: hands }, (_, hand) => one(hand)));
}

/** One in this many pauses is long: a client works in bursts. */
const BURST = 8;
/** The length of the others, relative to the mean. */
const SHORT = 1 / 8;
/** A hand that pauses when the clients come to rest must return in time. */
const PAUSE_MS_MAX = 5_000;

/**
 * Waits, on average, `factor` times a client's pause, times its hands: with more hands, more operations overlap, but no
 * more are done.
 */
export function think({ options }: World, { clock, random }: ClientLife, factor: number): Promise<void> {
  const long = random.int(BURST) === 0;
  const share = long ? BURST - (BURST - 1) * SHORT : SHORT;
  const most = Math.ceil(2 * share * factor * options.thinkMs * options.hands);
  return sleep(clock, random.int(Math.min(most, PAUSE_MS_MAX)));
}
