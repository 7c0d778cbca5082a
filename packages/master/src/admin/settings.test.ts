import { ServiceError } from '@remora/base';
import { describe, expect, test } from 'vitest';
import { checkSetting, describeSettings, effectiveSettings } from './settings.ts';

const texts = (set: Record<string, string> = {}) => new Map(Object.entries(set));

describe('checking a setting', () => {
  const right: readonly { name: string; value: string; set?: Record<string, string>; expect: string }[] = [
    { name: 'down-after', value: '300s', expect: '5m' },
    { name: 'down-after', value: '600s', expect: '' },
    { name: 'down-after', value: '', set: { 'down-after': '5m' }, expect: '' },
    { name: 'suspect-after', value: '11m', set: { 'down-after': '1h' }, expect: '11m' },
  ];
  test.each(right)('$name=$value is kept as "$expect"', ({ name, value, set, expect: text }) => {
    expect(checkSetting(texts(set), name, value)).toBe(text);
  });

  const wrong: readonly { name: string; value: string; set?: Record<string, string>; says: string }[] = [
    { name: 'down-afer', value: '5m', says: 'there is no setting "down-afer", did you mean down-after?' },
    { name: 'colour', value: 'red', says: 'There are: suspect-after, down-after' },
    { name: 'down-after', value: '5', says: '"5" is not right: expected a length of time such as' },
    { name: 'down-after', value: '0', says: 'from 1s to 30d' },
    {
      name: 'down-after',
      value: '3s',
      says: 'down-after must be longer than suspect-after; it would be down-after 3s',
    },
    { name: 'suspect-after', value: '20m', says: 'suspect-after 20m' },
    { name: 'down-after', value: '', set: { 'down-after': '1h', 'suspect-after': '20m' }, says: 'down-after 10m' },
  ];
  test.each(wrong)('$name=$value is refused: $says', ({ name, value, set, says }) => {
    const check = () => checkSetting(texts(set), name, value);
    expect(check).toThrow(ServiceError);
    expect(check).toThrow(says);
  });
});

describe('the settings in force', () => {
  test('are the defaults, and what was set', () => {
    expect(effectiveSettings(texts())).toEqual({ suspectAfter: 3_000, downAfter: 600_000 });
    expect(effectiveSettings(texts({ 'down-after': '5m' }))).toEqual({ suspectAfter: 3_000, downAfter: 300_000 });
  });

  test('leave out what another version of the program wrote', () => {
    const odd = texts({ 'down-after': 'never', 'suspect-after': '5s', colour: 'red' });
    expect(effectiveSettings(odd)).toEqual({ suspectAfter: 5_000, downAfter: 600_000 });
    expect(effectiveSettings(texts({ 'suspect-after': '1h' }))).toEqual({ suspectAfter: 3_000, downAfter: 600_000 });
  });

  test('are described as they are written', () => {
    expect(describeSettings(texts({ 'down-after': '5m' }))[1]).toMatchObject({
      name: 'down-after',
      value: '5m',
      defaultValue: '10m',
      placeholder: '<duration>',
    });
  });
});
