import { describe, expect, test } from 'vitest';
import { DEFAULT_SETTINGS, describeSetting, SETTING_NAMES, withSetting } from './settings.ts';

test.each(SETTING_NAMES)('the default of %s is allowed', (name) => {
  const { default: value, desc } = describeSetting(name);
  expect(withSetting(DEFAULT_SETTINGS, name, value)).toEqual(DEFAULT_SETTINGS);
  expect(desc).toMatch(/\.$/);
});

test('a setting is changed in a copy', () => {
  const changed = withSetting(DEFAULT_SETTINGS, 'replicas', 5);
  expect(changed).toEqual({ ...DEFAULT_SETTINGS, replicas: 5 });
  expect(DEFAULT_SETTINGS.replicas).toBe(3);
});

describe('what is refused says what would be right', () => {
  test.each([
    {
      name: 'an unknown name',
      setting: 'replica',
      value: 3,
      says: /there is no setting "replica"; there are replicas,/,
    },
    { name: 'a name of every object', setting: 'constructor', value: 3, says: /there is no setting/ },
    { name: 'too small', setting: 'replicas', value: 0, says: /from 1 to 7/ },
    { name: 'too large', setting: 'replicas', value: 8, says: /from 1 to 7/ },
    { name: 'a fraction', setting: 'replicas', value: 2.5, says: /whole number/ },
    { name: 'no number', setting: 'replicas', value: Number.NaN, says: /whole number/ },
    {
      name: 'marks of space that cross',
      setting: 'lowSpacePercent',
      value: 20,
      says: /targetSpacePercent has to be above/,
    },
  ])('$name', ({ setting, value, says }) => {
    expect(() => withSetting(DEFAULT_SETTINGS, setting, value)).toThrow(
      expect.objectContaining({ code: 'INVALID_ARGUMENT', message: expect.stringMatching(says) }),
    );
  });
});
