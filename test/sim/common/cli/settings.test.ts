import { describe, expect, it } from 'vitest';
import { settingsOf } from './settings.ts';

describe('the command line of a simulation', () => {
  const refused = [
    { args: ['--seeds', 'abc'], why: '--seeds: "abc" is not a whole number above 0' },
    { args: ['--seeds', '0'], why: '--seeds: "0" is not' },
    { args: ['--seed', '1.5'], why: '--seed: "1.5" is not' },
    { args: ['--jobs', ''], why: '--jobs: "" is not' },
    { args: ['--minutes=-1'], why: '"-1" is not a number above 0' },
    { args: ['--schedule', 'x.json'], why: '--schedule needs --seed' },
    { args: ['--seed', '3', '--seeds', '9', '--schedule', 'x.json'], why: '--schedule needs --seed' },
    { args: ['--seed', '3', '--resume'], why: 'leave out --seed' },
    { args: ['--step', '0'], why: '--step: "0" is not' },
    { args: ['--step', '9', '--resume'], why: 'leave out --step' },
    { args: ['--sedes', '3'], why: "Unknown option '--sedes'" },
  ];
  it.each(refused)('$args is refused, not taken for a run of nothing', ({ args, why }) => {
    expect(() => settingsOf(args)).toThrow(why);
  });

  it('a seed alone is one run; with a number of seeds it is where they begin', () => {
    expect(settingsOf(['--seed', '7'])).toMatchObject({ single: true, seed: 7 });
    expect(settingsOf(['--seed', '7', '--seeds', '3'])).toMatchObject({ single: false, seed: 7, seeds: 3 });
    expect(settingsOf([])).toMatchObject({ single: false, seed: 1, seeds: 200, step: 1, jobs: 1 });
  });
});
