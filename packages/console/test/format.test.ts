import { describe, expect, test } from 'vitest';
import { durationProblem, parseDuration } from '../src/logic/duration.ts';
import { ago, bytes, clockSpan, coarse, counted, latency, rate, span } from '../src/logic/format.ts';

describe('numbers as text', () => {
  test.each([
    { text: bytes(0), expected: '0 B' },
    { text: bytes(1_023), expected: '1023 B' },
    { text: bytes(1_024), expected: '1.00 KiB' },
    { text: bytes(1_048_575), expected: '1.00 MiB' },
    { text: bytes(31_500_000), expected: '30.0 MiB' },
    { text: bytes(-1), expected: 'unknown' },
    { text: rate(0), expected: '0' },
    { text: rate(0.25), expected: '0.25' },
    { text: rate(1_234), expected: '1,234' },
    { text: rate(45_678), expected: '45.7k' },
    { text: rate(999_999), expected: '1.00M' },
    { text: rate(Number.NaN), expected: '–' },
    { text: latency(0.421), expected: '0.42 ms' },
    { text: latency(999.7), expected: '1.00 s' },
    { text: counted(1, 'lock'), expected: '1 lock' },
    { text: counted(12_345, 'lock'), expected: '12,345 locks' },
  ])('$expected', ({ text, expected }) => {
    expect(text).toBe(expected);
  });
});

describe('times as text', () => {
  test.each([
    { text: span(250), expected: '250 ms' },
    { text: span(8_240), expected: '8.2 s' },
    { text: span(59_999), expected: '59 s' },
    { text: span(3_600_000), expected: '1 h' },
    { text: span(3_900_000), expected: '1 h 5 min' },
    { text: span(Number.POSITIVE_INFINITY), expected: 'unknown' },
    { text: clockSpan(1), expected: '1 s' },
    { text: clockSpan(125_000), expected: '2:05' },
    { text: clockSpan(3_725_000), expected: '1:02:05' },
    { text: coarse(47 * 3_600_000), expected: '47 h' },
    { text: ago(1_000, 2_000), expected: 'just now' },
    { text: ago(0, 65_000), expected: '1 min ago' },
    { text: ago(65_000, 0), expected: 'in 1 min' },
  ])('$expected', ({ text, expected }) => {
    expect(text).toBe(expected);
  });

  test.each([
    { text: '250ms', ms: 250 },
    { text: '1m30s', ms: 90_000 },
    { text: '1.5h', ms: 5_400_000 },
    { text: '30', ms: undefined },
    { text: '', ms: undefined },
    { text: '1 h', ms: undefined },
  ])('the duration "$text" is $ms ms', ({ text, ms }) => {
    expect(parseDuration(text)).toBe(ms);
    expect(durationProblem(text) === undefined).toBe(ms !== undefined);
  });
});
