import { ServiceError } from '@remora/base';
import { describe, expect, test } from 'vitest';
import { DEFAULT_SETTINGS } from '../scheduling/settings.ts';
import { splitPolicyOf } from './range-settings.ts';
import { SettingsSchema, schedulingSettings } from './settings.ts';

const schema = new SettingsSchema({ replicas: 3 });

const texts = (set: Record<string, string> = {}) => new Map(Object.entries(set));

describe('checking a setting', () => {
  const right: readonly { name: string; value: string; set?: Record<string, string>; expect: string }[] = [
    { name: 'down-after', value: '300s', expect: '5m' },
    { name: 'down-after', value: '600s', expect: '10m' },
    { name: 'down-after', value: '', set: { 'down-after': '5m' }, expect: '' },
    { name: 'suspect-after', value: '11m', set: { 'down-after': '1h' }, expect: '11m' },
    { name: 'replicas', value: '5', expect: '5' },
    { name: 'replicas', value: '3', expect: '3' },
    { name: 'scheduling', value: 'off', expect: 'false' },
    { name: 'node-settle', value: '1m', expect: '1m' },
    { name: 'bytes-gap-min', value: '512MiB', expect: '512MiB' },
    { name: 'isolation-levels', value: 'zone, host', expect: 'zone,host' },
    { name: 'isolation-levels', value: '', set: { 'isolation-levels': 'zone' }, expect: '' },
  ];
  test.each(right)('$name=$value is kept as "$expect"', ({ name, value, set, expect: text }) => {
    expect(schema.check(texts(set), name, value)).toBe(text);
  });

  const wrong: readonly { name: string; value: string; set?: Record<string, string>; says: string }[] = [
    { name: 'down-afer', value: '5m', says: 'unknown setting "down-afer", did you mean down-after?' },
    {
      name: 'colour',
      value: 'red',
      says: 'The settings are: suspect-after, down-after, scheduling, isolation-levels, auto-split,',
    },
    { name: 'down-after', value: '5', says: 'invalid value "5": expected a duration such as' },
    { name: 'down-after', value: '0', says: 'from 3s to 30d' },
    // Nodes report every second: with less, each would be down again and again, and masters lose their places for good.
    { name: 'down-after', value: '1s', set: { 'suspect-after': '500ms' }, says: 'from 3s to 30d' },
    {
      name: 'down-after',
      value: '3s',
      says: 'down-after must be longer than suspect-after; it would be down-after 3s',
    },
    { name: 'suspect-after', value: '20m', says: 'suspect-after 20m' },
    { name: 'replicas', value: '8', says: 'from 1 to 7' },
    { name: 'isolation-levels', value: ' , ', says: 'a list of at least 1 values' },
    { name: 'replicas', value: '2.5', says: 'expected a whole number' },
    { name: 'low-space-percent', value: '20', says: 'target-space-percent must be above low-space-percent' },
    {
      name: 'split-size',
      value: '16MiB',
      says: 'split-size must be at least split-check-size; it would be split-size 16MiB',
    },
    { name: 'range-size-max', value: '64MiB', says: 'range-size-max must be above split-size' },
    { name: 'down-after', value: '', set: { 'down-after': '1h', 'suspect-after': '20m' }, says: 'down-after 10m' },
  ];
  test.each(wrong)('$name=$value is refused: $says', ({ name, value, set, says }) => {
    const check = () => schema.check(texts(set), name, value);
    expect(check).toThrow(ServiceError);
    expect(check).toThrow(says);
  });
});

describe('the settings in force', () => {
  test('leave out no more than what does not go together', () => {
    const ranges = { splitSize: 100 * 2 ** 20, rangeSizeMax: 200 * 2 ** 20 }; // of a master that was given other options
    const set = texts({ 'range-size-max': '96MiB', replicas: '5', scheduling: 'false', 'down-after': '1h' });
    expect(new SettingsSchema({ replicas: 3, ranges }).effective(set)).toMatchObject({
      ...{ rangeSizeMax: ranges.rangeSizeMax, replicas: 5, scheduling: false, downAfter: 3_600_000 },
    });
  });

  test('are the defaults, and what was set', () => {
    expect(schema.effective(texts())).toMatchObject({ suspectAfter: 3_000, downAfter: 600_000 });
    expect(schema.effective(texts({ 'down-after': '5m' }))).toMatchObject({ suspectAfter: 3_000, downAfter: 300_000 });
  });

  test('leave out what another version of the program wrote', () => {
    const odd = texts({ 'down-after': 'never', 'suspect-after': '5s', colour: 'red' });
    expect(schema.effective(odd)).toMatchObject({ suspectAfter: 5_000, downAfter: 600_000 });
    expect(schema.effective(texts({ 'suspect-after': '1h' }))).toMatchObject({
      suspectAfter: 3_000,
      downAfter: 600_000,
    });
  });

  test('are what scheduling goes by', () => {
    expect(schedulingSettings(schema.effective(texts()))).toEqual(DEFAULT_SETTINGS);
    const set = texts({ replicas: '5', 'down-after': '5m', 'move-cooldown': '1s', 'isolation-levels': 'zone' });
    expect(schedulingSettings(schema.effective(set))).toEqual({
      ...DEFAULT_SETTINGS,
      ...{ replicas: 5, replicaDownAfterMs: 300_000, moveCooldownMs: 1_000, isolationLevels: ['zone'] },
    });
  });

  test('have the number of replicas that the cluster was founded for, unless it is set', () => {
    const single = new SettingsSchema({ replicas: 1 });
    expect(single.effective(texts()).replicas).toBe(1);
    expect(single.check(texts(), 'replicas', '3')).toBe('3');
    expect(single.effective(texts({ replicas: '3' })).replicas).toBe(3);
  });

  test('stay what they were set to, whichever master leads: what is the default of one is not that of all', () => {
    const alone = new SettingsSchema({ replicas: 1 });
    const before = texts({ replicas: alone.check(texts(), 'replicas', '1') });
    const after = texts({ replicas: schema.check(before, 'replicas', '3') });
    expect(schema.effective(after).replicas).toBe(3);
    expect(alone.effective(after).replicas).toBe(3);
  });

  test('about ranges begin with the options of the nodes, and go before them once they are set', () => {
    const ranges = { autoSplit: true, splitSize: 2 ** 26, splitCheckSize: 2 ** 20, splitLoadTime: 5_000 };
    const schema = new SettingsSchema({ replicas: 3, ranges });
    const set = texts({ 'split-check-size': '2MiB', 'split-requests-per-second': '0' });
    expect(schema.effective(texts())).toMatchObject({ ...ranges, rangeSizeMax: 2 ** 27 });
    expect(splitPolicyOf(schema.effective(set))).toEqual({
      automatic: true,
      sizes: { checkBytes: 2 ** 21, splitBytes: 2 ** 26, maxBytes: 2 ** 27 },
      loads: { requestsPerS: 0, bytesPerS: 2 ** 25, holdMs: 5_000 },
    });
    expect(schema.check(set, 'split-check-size', '')).toBe('');
  });

  test('each have a default that is allowed, and say what they mean', () => {
    for (const { name, value, description } of schema.describe(texts())) {
      expect(schema.check(texts(), name, value)).toBe(value);
      expect(description).toMatch(/\.$/);
    }
  });

  test('are described as they are written', () => {
    expect(schema.describe(texts({ 'down-after': '5m' }))[1]).toMatchObject({
      name: 'down-after',
      value: '5m',
      defaultValue: '10m',
      placeholder: '<duration>',
    });
  });
});
