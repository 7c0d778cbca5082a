import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { call, get } from '../src/api/client.ts';
import { connection } from '../src/api/connection.ts';

describe('a call without an answer', () => {
  const fetched = vi.fn(() => Promise.reject(new TypeError('connection refused')));
  beforeEach(() => {
    vi.stubGlobal('fetch', fetched);
    vi.useFakeTimers();
  });
  afterEach(() => {
    connection.set({ isUp: true, again: 0 });
    fetched.mockClear();
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  test('that reads has changed nothing', async () => {
    await expect(get('/v1/cluster')).rejects.toMatchObject({ code: 'UNREACHABLE' });
    connection.set({ isUp: true, again: 0 });
    await expect(call('POST', '/v1/can', { changes: false })).rejects.toMatchObject({ code: 'UNREACHABLE' });
  });

  test('that changes something may have changed it', async () => {
    await expect(call('DELETE', '/v1/kv/x')).rejects.toMatchObject({ code: 'UNKNOWN_OUTCOME' });
  });

  test('is not sent if it is a change and the connection is known to be lost', async () => {
    connection.set({ isUp: false, again: 0, lostAt: 0 });
    await expect(call('PUT', '/v1/kv/x')).rejects.toMatchObject({
      code: 'UNREACHABLE',
      message: expect.stringContaining('was not sent'),
    });
    expect(fetched).not.toHaveBeenCalled();
    await expect(get('/v1/kv/x')).rejects.toMatchObject({ code: 'UNREACHABLE' });
    expect(fetched).toHaveBeenCalledOnce();
  });
});
