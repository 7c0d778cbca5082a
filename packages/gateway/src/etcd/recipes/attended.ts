import { ServiceError, toServiceError } from '@remora/base';
import type { CallDone, TakeBack } from '../../calls.ts';

/**
 * Answers a call with the result of an asynchronous recipe. Giving up aborts the recipe's signal, with the error to
 * answer.
 */
export function attended<Response>(
  done: CallDone<Response>,
  recipe: (signal: AbortSignal) => Promise<Response>,
): TakeBack {
  const over = new AbortController();
  recipe(over.signal).then(
    (response) => done(undefined, response),
    (error: unknown) => done(toServiceError(error), undefined),
  );
  return (why = new ServiceError('CANCELED', 'the caller gave up')) => over.abort(why);
}
