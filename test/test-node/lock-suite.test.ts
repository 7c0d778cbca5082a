import { startTestCluster } from 'remora-server/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { lockSuite } from './lock-suite.ts';

describe('tests of code that uses locks', () => {
  const count = lockSuite({ test, beforeAll, afterAll, startTestCluster });
  test('are fifty', () => {
    expect(count).toBe(50);
  });
});
