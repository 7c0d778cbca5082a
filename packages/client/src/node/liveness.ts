import type { Liveness } from '../ports.ts';

/** Longer than any wait: the timer only has to exist. */
const FOREVER_MS = 2 ** 31 - 1;

let holders = 0;
let timer: NodeJS.Timeout | undefined;

/**
 * Keeps the process alive with a timer while something is awaited; the timers of the SDK's clock do not. One timer
 * serves all clients: it is never removed, and a program may make any number of clients.
 */
export const processLiveness: Liveness = {
  hold() {
    holders++;
    if (timer === undefined) timer = setInterval(() => {}, FOREVER_MS);
    else if (holders === 1) timer.ref();
  },
  release() {
    holders--;
    if (holders === 0) timer?.unref();
  },
};
