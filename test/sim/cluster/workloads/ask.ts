/**
 * How workloads put their questions, at which pace, and what may come of them.
 *
 * G1. What ends as `refused` had no effect: the SDK's rule R2 is put to the test by whoever judges the history.
 * G2. A question fails for a reason that misfortune explains, or for one that is an answer to this question. Any other
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

/** Asks, and counts how it ends. `answers`: the codes with which the cluster may answer just this question. */
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

/** Several hands of one client work at once, each doing one thing after another until the clients rest. */
export async function withHands(world: World, hands: number, work: (hand: number) => Promise<void>): Promise<void> {
  const one = async (hand: number): Promise<void> => {
    while (!world.resting) await work(hand);
  };
  await Promise.all(Array.from({ length: hands }, (_, hand) => one(hand)));
}

/** Pauses in a row of which one is long: what a client does comes in bursts. */
const BURST = 8;
/** How long the others are, beside the mean. */
const SHORT = 1 / 8;
/** Who pauses when the clients come to rest has to be back in time. */
const PAUSE_MS_MAX = 5_000;

/**
 * Waits, on average, `factor` times as long as a client thinks, times its hands: several of them overlap more, and do
 * no more.
 */
export function think({ options }: World, { clock, random }: ClientLife, factor: number): Promise<void> {
  const long = random.int(BURST) === 0;
  const share = long ? BURST - (BURST - 1) * SHORT : SHORT;
  const most = Math.ceil(2 * share * factor * options.thinkMs * options.hands);
  return sleep(clock, random.int(Math.min(most, PAUSE_MS_MAX)));
}
