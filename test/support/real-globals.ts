/** Tests share a process (vitest.config.ts): what a file has replaced, as timers, is real for the next one. */
import { afterAll, vi } from 'vitest';

afterAll(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});
