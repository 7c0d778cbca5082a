import { once } from 'node:events';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { warningLogger } from './warning-logger.ts';

// Node prints warnings by a listener. Without it, this test prints none.
const printing = process.listeners('warning');
beforeEach(() => void process.removeAllListeners('warning'));
afterEach(() => {
  for (const listener of printing) process.on('warning', listener);
});

test('an error is a warning of the process, with all fields; nothing else is', async () => {
  const warned = once(process, 'warning');
  const logger = warningLogger.child({ client: 7 });
  logger.warn({}, 'a release failed');
  logger.error({ name: 'nightly', error: 'Error: boom' }, 'scheduled work failed');
  const [warning] = (await warned) as [Error];
  expect([warning.name, warning.message]).toEqual([
    'RemoraWarning',
    'scheduled work failed {"client":7,"name":"nightly","error":"Error: boom"}',
  ]);
});
