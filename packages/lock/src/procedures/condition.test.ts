import { describe, expect, test } from 'vitest';
import { type Condition, conditionRefusal, conditionTtlMs, holderMissesMax, validityMs } from './condition.ts';

const of = (heartbeatMs: number, serverMisses: number, holderMisses: number): Condition => ({
  ...{ heartbeatMs, serverMisses, holderMisses },
});

describe('a condition', () => {
  test.each([{ condition: of(1_000, 3, 2) }, { condition: of(1_000, 10, 8) }, { condition: of(250, 1_000, 900 - 1) }])(
    'that lets the holder stop first is taken: $condition',
    ({ condition }) => {
      expect(conditionRefusal(condition)).toBeUndefined();
    },
  );

  test.each([
    { why: 'nobody stops first', condition: of(1_000, 3, 3), says: /at most 2/ },
    { why: 'the holder stops last', condition: of(1_000, 3, 4), says: /at most 2/ },
    { why: 'the drift of clocks is not covered', condition: of(1_000, 10, 9), says: /at most 8/ },
    { why: 'the reaction is not covered', condition: of(250, 1_000, 900), says: /at most 899/ },
    { why: 'nothing is left for the holder', condition: of(1_000, 2, 2), says: /let the server miss more/ },
    { why: 'one late answer ends it', condition: of(1_000, 3, 1), says: /2 to 1000/ },
    { why: 'half a heartbeat is missed', condition: of(1_000, 3.5, 2), says: /2 to 1000 misses/ },
    { why: 'too many are missed', condition: of(1, 1_001, 2), says: /2 to 1000 misses/ },
    { why: 'there is no interval', condition: of(0, 3, 2), says: /above 0/ },
    { why: 'the interval is no number', condition: of(Number.NaN, 3, 2), says: /above 0/ },
  ])('is refused when $why', ({ condition, says }) => {
    expect(conditionRefusal(condition)).toMatch(says);
  });

  test('allows the most that leaves the margin', () => {
    for (const [heartbeatMs, serverMisses] of [
      [1_000, 3],
      [40, 30],
      [333.3, 7],
    ] as const) {
      const most = holderMissesMax(heartbeatMs, serverMisses);
      expect(conditionRefusal(of(heartbeatMs, serverMisses, most))).toBeUndefined();
      expect(conditionRefusal(of(heartbeatMs, serverMisses, most + 1))).toBeDefined();
      expect(most * heartbeatMs).toBeLessThanOrEqual(validityMs(conditionTtlMs(of(heartbeatMs, serverMisses, 2))));
    }
  });
});
