import { describe, expect, test } from 'vitest';
import { parseSession, sessionText } from './lock-json.ts';

describe('a session, as a word', () => {
  // A page that ended with the lease of an etcd client that had chosen a negative number could not be gone on from.
  test.each([1n, 2n ** 63n - 1n, -1n, -(2n ** 63n)])('of lease %s is read as it was written', (lease) => {
    const text = sessionText({ lease, incarnation: 7 });
    expect(text).toMatch(/^[0-9a-f]+\.7$/);
    expect(parseSession(text)).toEqual({ lease, incarnation: 7 });
  });

  test.each(['', '0.1', '-1.0', '10000000000000000.1', '1', '1.', '1.99999999999999999', '1.1.1', 'constructor'])(
    '%j is none',
    (text) => {
      expect(() => parseSession(text)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
    },
  );
});
