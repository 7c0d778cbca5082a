/** A pending timer. Cancelling one that has fired does nothing. */
export interface Timer {
  cancel(): void;
}

/**
 * Time, as a port. Elapsed time and every deadline that protects exclusion use `monotonicMs`; `wallMs` is for
 * display. Production wires it to Node, the simulator to its virtual clock.
 */
export interface Clock {
  /** Milliseconds since the epoch; may jump in either direction. */
  wallMs(): number;
  /**
   * Milliseconds with fractions since some fixed moment; never goes back; does not count while the machine is
   * suspended.
   */
  monotonicMs(): number;
  /** Calls `fn` once after `delayMs`. The timer does not keep the process alive. */
  setTimer(delayMs: number, fn: () => void): Timer;
  /** Calls `fn` after the current turn of the event loop, before any timer: the place to gather work into batches. */
  setImmediate(fn: () => void): void;
}

/**
 * The assumed error of any machine's clock rate, in percent, in either direction. Everything that relies on two clocks
 * agreeing about a span of time assumes this and no less (docs/decisions/0010-clock-drift.md).
 */
export const CLOCK_DRIFT_PERCENT = 5;

/**
 * The largest difference between the rates of two clocks, in percent of the faster one, when both are off. A span S on
 * the faster clock is at least S * (1 - d) / (1 + d) on the slower, which is above S * (1 - 2d), with d the drift.
 */
export const CLOCK_DIFFERENCE_PERCENT = 2 * CLOCK_DRIFT_PERCENT;

/**
 * A remote promise lasts `ms` on the remote clock, and began there no earlier than the local span. Returns how long the
 * local clock may rely on it.
 */
export function safeSpanMs(ms: number): number {
  return ms * (1 - CLOCK_DIFFERENCE_PERCENT / 100);
}

/** Resolves after `delayMs`, or rejects with the signal's reason when it is aborted first. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const timer = clock.setTimer(delayMs, () => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    });
    function onAbort(): void {
      timer.cancel();
      reject(signal?.reason);
    }
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}
