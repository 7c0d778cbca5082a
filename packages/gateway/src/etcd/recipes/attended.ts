import { ServiceError, toServiceError } from '@remora/base';
import type { CallDone, GiveUp } from '../../calls.ts';

/** Answers a call with what an asynchronous recipe gives. Whoever gives up aborts the recipe's signal. */
export function attended<Response>(
  done: CallDone<Response>,
  recipe: (signal: AbortSignal) => Promise<Response>,
): GiveUp {
  const over = new AbortController();
  recipe(over.signal).then(
    (response) => done(undefined, response),
    (error: unknown) => done(toServiceError(error), undefined),
  );
  return () => over.abort(new ServiceError('CANCELED', 'the caller gave up'));
}
