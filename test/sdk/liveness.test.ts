import { createHook } from 'node:async_hooks';
import { connect, RemoraError } from 'remora';
import { expect, test } from 'vitest';

test('clients that come and go leave no timer each', async () => {
  const timers = new Set<number>();
  const hook = createHook({
    init: (id, type) => void (type === 'Timeout' && timers.add(id)),
    destroy: (id) => timers.delete(id),
  }).enable();
  try {
    for (let i = 0; i < 20; i++) {
      await expect(connect({ endpoints: '127.0.0.1:1', connectTimeout: 1 })).rejects.toBeInstanceOf(RemoraError);
    }
    for (let turns = 0; turns < 20; turns++) await new Promise((resolve) => setImmediate(resolve));
    await new Promise((resolve) => setTimeout(resolve, 50));
    await new Promise((resolve) => setImmediate(resolve));
    expect(timers.size).toBeLessThan(10);
  } finally {
    hook.disable();
  }
});
