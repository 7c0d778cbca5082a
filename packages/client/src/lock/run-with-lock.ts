import { type Logger, ServiceError, toServiceError } from '@remora/base';

/** What is done while something is held; it is given the handle, for its `version` and `signal`. */
export type Work<Held, Result> = (held: Held) => Result | Promise<Result>;

/** The arguments of a `run`: how to acquire, which may be left out, and what to do then. */
export type RunArguments<Options, Held, Result> =
  | readonly [work: Work<Held, Result>]
  | readonly [options: Options, work: Work<Held, Result>];

/**
 * Acquires, works, and gives back, whatever came of the work.
 *
 * The work's value and the work's error are the caller's: a release that fails hides neither. It is tried further in the
 * background, is told to the logger, and stands as `suppressed` at the error that the work had thrown.
 */
export async function runWithLock<Options extends object, Held extends AsyncDisposable, Result>(
  acquire: (options: Options) => Promise<Held>,
  args: RunArguments<Partial<Options>, Held, Result>,
  logger: Logger,
): Promise<Result> {
  const [options, work] = args.length === 1 ? [{}, args[0]] : args;
  if (typeof work !== 'function')
    throw new ServiceError('INVALID_ARGUMENT', `run: expected a function, got ${typeof work}`);
  const held = await acquire(options as Options);
  let result: Result;
  try {
    result = await work(held);
  } catch (error) {
    const failure = await failureOf(held, logger);
    if (failure !== undefined) suppress(error, failure);
    throw error;
  }
  await failureOf(held, logger);
  return result;
}

/** Gives it back; the error when that failed. */
async function failureOf(held: AsyncDisposable, logger: Logger): Promise<unknown> {
  try {
    await held[Symbol.asyncDispose]();
    return undefined;
  } catch (error) {
    logger.warn({ code: toServiceError(error).code }, 'a lock could not be released; it ends with its session');
    return error;
  }
}

/** The thrown error stays the one that it is; what cannot carry another one, or carries one already, is left alone. */
function suppress(error: unknown, suppressed: unknown): void {
  if (!(error instanceof Error) || !Object.isExtensible(error) || 'suppressed' in error) return;
  Object.defineProperty(error, 'suppressed', { value: suppressed, configurable: true, writable: true });
}
