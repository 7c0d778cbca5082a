import { type Logger, ServiceError, toServiceError } from '@remora/base';
import type { Requester } from '../transport/requester.ts';
import type { HeldLock } from './held-lock.ts';
import { asTask } from './task-locks.ts';

/** The work to do while something is held. It receives the handle, with its `version` and `signal`. */
export type Work<Held, Result> = (held: Held) => Result | Promise<Result>;

/** The arguments of a `run`: the options of the acquire, which may be omitted, and the work. */
export type RunArguments<Options, Held, Result> =
  | readonly [work: Work<Held, Result>]
  | readonly [options: Options, work: Work<Held, Result>];

/**
 * Acquires, runs the work, and releases, whether the work succeeds or not.
 *
 * A release that fails hides neither the result nor the error of the work: it is logged, retried in the background, and
 * attached as `suppressed` to an error of the work. `locksOf`: what the work holds as a task.
 */
export async function runWithLock<Options extends object, Held extends AsyncDisposable, Result>(
  acquire: (options: Options) => Promise<Held>,
  args: RunArguments<Partial<Options>, Held, Result>,
  requester: Requester,
  locksOf: (held: Held) => readonly HeldLock[],
): Promise<Result> {
  const { logger } = requester.ports;
  const [options, work] = args.length === 1 ? [{}, args[0]] : args;
  if (typeof work !== 'function')
    throw new ServiceError('INVALID_ARGUMENT', `run: expected a function, got ${typeof work}`);
  const held = await acquire(options as Options);
  let result: Result;
  try {
    result = await asTask(requester, locksOf(held), () => work(held));
  } catch (error) {
    const failure = await failureOf(held, logger);
    if (failure !== undefined) suppress(error, failure);
    throw error;
  }
  await failureOf(held, logger);
  return result;
}

/** Releases it. Returns the error if that failed. */
async function failureOf(held: AsyncDisposable, logger: Logger): Promise<unknown> {
  try {
    await held[Symbol.asyncDispose]();
    return undefined;
  } catch (error) {
    logger.warn({ code: toServiceError(error).code }, 'a lock could not be released; it ends with its session');
    return error;
  }
}

/**
 * The thrown error stays the same object. One that cannot carry another error, or carries one already, is left
 * unchanged.
 */
function suppress(error: unknown, suppressed: unknown): void {
  if (!(error instanceof Error) || !Object.isExtensible(error) || 'suppressed' in error) return;
  Object.defineProperty(error, 'suppressed', { value: suppressed, configurable: true, writable: true });
}

/** What a `run` of one lock holds. */
export function alone(held: HeldLock): readonly HeldLock[] {
  return [held];
}
