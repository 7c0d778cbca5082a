import type { Liveness } from '../ports.ts';

/** Longer than any wait: the timer's only use is that it exists. */
const FOREVER_MS = 2 ** 31 - 1;

let holders = 0;
let timer: NodeJS.Timeout | undefined;

/**
 * While something is awaited a timer keeps the process alive, as those of the SDK's clock do not. One for all clients: it is
 * never given back, and a program may make clients for as long as it runs.
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
