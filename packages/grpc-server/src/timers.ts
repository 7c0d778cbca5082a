/** A pending timer. Cancelling one that has fired does nothing. */
export interface PendingTimer {
  cancel(): void;
}

/** Time, as the server uses it. Tests pass a clock of their own. */
export interface Timers {
  /** Milliseconds with fractions since some fixed moment; never goes back. */
  monotonicMs(): number;
  /** Calls `fn` once after `delayMs`. The timer does not keep the process alive. */
  setTimer(delayMs: number, fn: () => void): PendingTimer;
  /** Calls `fn` after the current turn of the event loop, before any timer. */
  setImmediate(fn: () => void): void;
}
