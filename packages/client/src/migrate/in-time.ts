import type { Clock } from '@remora/base';
import { aborted } from '../lock/acquire.ts';

export interface Terms {
  readonly clock: Clock;
  readonly withinMs: number;
  readonly signal?: AbortSignal | undefined;
  readonly late: () => Error;
}

/** Settles as the call does. Rejects if its time is over before that, or if the signal aborts. */
export function inTime<Result>(call: Promise<Result>, { clock, withinMs, signal, late }: Terms): Promise<Result> {
  return new Promise((resolve, reject) => {
    const timer = clock.setTimer(withinMs, () => end(() => reject(late())));
    const abort = () => signal && end(() => reject(aborted(signal)));
    const end = (settle: () => void) => {
      timer.cancel();
      signal?.removeEventListener('abort', abort);
      settle();
    };
    signal?.addEventListener('abort', abort);
    call.then(
      (result) => end(() => resolve(result)),
      (error: unknown) => end(() => reject(error)),
    );
  });
}
