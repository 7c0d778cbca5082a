import { connect, RemoraError } from 'remora';
import { expect, onTestFinished, test, vi } from 'vitest';

/** Of the timer that keeps a process alive; no other one is so long. */
const FOREVER_MS = 2 ** 31 - 1;

// By that timer alone: other files run in the same process, and what they left behind may have timers of its own.
test('clients that come and go leave no timer each', async () => {
  const begun = vi.spyOn(globalThis, 'setInterval');
  onTestFinished(() => void begun.mockRestore());
  for (let i = 0; i < 20; i++) {
    await expect(connect({ endpoints: '127.0.0.1:1', connectTimeout: 1 })).rejects.toBeInstanceOf(RemoraError);
  }
  expect(begun.mock.calls.filter(([, delayMs]) => delayMs === FOREVER_MS).length).toBeLessThanOrEqual(1);
});
