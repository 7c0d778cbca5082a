import { describe, expect, test } from 'vitest';
import { address, bool, bytes, durationMs, float, int, list, type OptionType, oneOf, string } from './types.ts';

const REFUSED = Symbol('refused');

interface Row {
  readonly name: string;
  readonly type: OptionType<unknown>;
  readonly given: string;
  readonly expect: unknown;
}

const rows: readonly Row[] = [
  { name: 'a whole number', type: int(), given: '42', expect: 42 },
  { name: 'a fraction where a whole number belongs', type: int(), given: '4.2', expect: REFUSED },
  { name: 'a number with trailing letters', type: int(), given: '42x', expect: REFUSED },
  { name: 'a number that is not safe', type: int(), given: '9007199254740993', expect: REFUSED },
  { name: 'a number at the lower limit', type: int({ min: 3 }), given: '3', expect: 3 },
  { name: 'a number below the lower limit', type: int({ min: 3 }), given: '2', expect: REFUSED },
  { name: 'a number above the upper limit', type: int({ max: 3 }), given: '4', expect: REFUSED },
  { name: 'a fraction', type: float(), given: '.5', expect: 0.5 },
  { name: 'infinity', type: float(), given: 'Infinity', expect: REFUSED },
  { name: 'a switch without a value', type: bool(), given: '', expect: true },
  { name: 'a switch turned off', type: bool(), given: 'Off', expect: false },
  { name: 'a switch with another word', type: bool(), given: 'maybe', expect: REFUSED },
  { name: 'empty text', type: string(), given: '', expect: REFUSED },
  { name: 'text that is too long', type: string({ maxLength: 2 }), given: 'abc', expect: REFUSED },
  { name: 'a word of the set', type: oneOf(['info', 'warn']), given: 'WARN', expect: 'warn' },
  { name: 'a word outside the set', type: oneOf(['info', 'warn']), given: 'loud', expect: REFUSED },
  { name: 'a list', type: list(int()), given: '1, 2,3', expect: [1, 2, 3] },
  { name: 'a list with a wrong member', type: list(int()), given: '1,b', expect: REFUSED },
  { name: 'a list that is too short', type: list(int(), { minLength: 2 }), given: '1', expect: REFUSED },
  { name: 'seconds', type: durationMs(), given: '5s', expect: 5000 },
  { name: 'milliseconds', type: durationMs(), given: '100ms', expect: 100 },
  { name: 'a sum of units', type: durationMs(), given: '1m30s', expect: 90_000 },
  { name: 'a fraction of a unit', type: durationMs(), given: '1.5h', expect: 5_400_000 },
  { name: 'a duration without a unit', type: durationMs(), given: '100', expect: REFUSED },
  { name: 'a duration of nothing', type: durationMs(), given: '0', expect: 0 },
  { name: 'a duration below the limit', type: durationMs({ min: 1000 }), given: '999ms', expect: REFUSED },
  { name: 'mebibytes', type: bytes(), given: '64MiB', expect: 67_108_864 },
  { name: 'megabytes', type: bytes(), given: '64MB', expect: 64_000_000 },
  { name: 'a fraction of mebibytes', type: bytes(), given: '1.5MiB', expect: 1_572_864 },
  { name: 'plain bytes', type: bytes(), given: '512', expect: 512 },
  { name: 'a fraction of a byte', type: bytes(), given: '0.5', expect: REFUSED },
  { name: 'an address', type: address(), given: 'db1.example:7481', expect: { host: 'db1.example', port: 7481 } },
  { name: 'an IPv6 address', type: address(), given: '[::1]:7481', expect: { host: '::1', port: 7481 } },
  { name: 'an IPv6 address without brackets', type: address(), given: '::1:7481', expect: REFUSED },
  { name: 'an address without a port', type: address(), given: 'db1', expect: REFUSED },
  { name: 'port 0', type: address(), given: 'db1:0', expect: REFUSED },
  { name: 'a port that is too high', type: address(), given: 'db1:65536', expect: REFUSED },
];

describe('reading text', () => {
  test.each(rows)('$name: $given', ({ type, given, expect: expected }) => {
    const reading = type.parse(given);
    expect(reading.ok ? reading.value : REFUSED).toEqual(expected);
  });

  test.each(rows.filter((row) => row.expect !== REFUSED))('what is shown for $given reads back as the same', (row) => {
    const shown = row.type.show(row.expect);
    expect(row.type.parse(shown)).toEqual({ ok: true, value: row.expect });
  });
});

describe('reading a file', () => {
  const fileRows: readonly { name: string; type: OptionType<unknown>; given: unknown; expect: unknown }[] = [
    { name: 'a number as it is', type: int(), given: 3, expect: 3 },
    { name: 'null for a number', type: int(), given: null, expect: REFUSED },
    { name: 'a duration as a bare number', type: durationMs(), given: 100, expect: REFUSED },
    { name: 'a duration with its unit', type: durationMs(), given: '100ms', expect: 100 },
    { name: 'a size as a bare number', type: bytes(), given: 1024, expect: 1024 },
    { name: 'a switch', type: bool(), given: false, expect: false },
    { name: 'a number for a switch', type: bool(), given: 7, expect: REFUSED },
    { name: 'a sequence', type: list(oneOf(['a', 'b'])), given: ['a', 'b'], expect: ['a', 'b'] },
    { name: 'a list written as text', type: list(oneOf(['a', 'b'])), given: 'a,b', expect: ['a', 'b'] },
    { name: 'a map for a list', type: list(string()), given: { a: 1 }, expect: REFUSED },
  ];
  test.each(fileRows)('$name', ({ type, given, expect: expected }) => {
    const reading = type.fromFile(given);
    expect(reading.ok ? reading.value : REFUSED).toEqual(expected);
  });
});

test('a refusal says what would be right, with the limits in the unit of the option', () => {
  expect(durationMs({ min: 10, max: 60_000 }).parse('5m')).toEqual({
    ok: false,
    expected: 'a duration such as 100ms, 5s or 2m from 10ms to 1m',
  });
});
