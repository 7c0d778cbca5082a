/** Tests share a process (vitest.config.ts): whatever a file has replaced, timers for example, is real for the next one. */
import { afterAll, vi } from 'vitest';

afterAll(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});
