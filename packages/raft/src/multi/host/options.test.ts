import { InvariantError } from '@remora/base';
import { describe, expect, test } from 'vitest';
import { HOST_DEFAULTS, hostOptions } from './options.ts';

describe('options', () => {
  test('defaults hold, and the object is frozen', () => {
    expect(hostOptions()).toEqual(HOST_DEFAULTS);
    expect(Object.isFrozen(hostOptions({ tickMs: 10 }))).toBe(true);
  });

  test.each([
    { tickMs: 0 },
    { electionTicks: 2, heartbeatTicks: 2 },
    { electionSpreadPercent: 0 },
    { catchUpTicksMax: 20 },
    { tailEntries: -1 },
    { turnBudgetMs: Number.NaN },
    { snapshotBytesPerSecondMax: 1_000 },
    { snapshotBytesPerSecondBusy: 1_000 },
  ])('%o is refused', (given) => {
    expect(() => hostOptions(given)).toThrow(InvariantError);
  });
});
