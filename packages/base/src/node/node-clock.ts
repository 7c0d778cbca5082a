import type { Clock, Timer } from '../clock.ts';

/** Node fires a timer with a longer delay at once, so longer delays are waited for in pieces. */
const DELAY_MS_MAX = 2 ** 31 - 1;

/**
 * The process's clock: the system's wall clock, the kernel's monotonic clock, timers that never keep the process alive.
 */
export function nodeClock(): Clock {
  return {
    wallMs: () => Date.now(),
    monotonicMs: () => performance.now(),
    setTimer: startTimer,
    setImmediate: (fn) => {
      setImmediate(fn);
    },
  };
}

function startTimer(delayMs: number, fn: () => void): Timer {
  let left = delayMs;
  let handle: NodeJS.Timeout;
  const arm = (): void => {
    const piece = Math.min(left, DELAY_MS_MAX);
    left -= piece;
    handle = setTimeout(left > 0 ? arm : fn, piece);
    handle.unref();
  };
  arm();
  return { cancel: () => clearTimeout(handle) };
}
