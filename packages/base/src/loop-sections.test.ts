import { afterEach, beforeEach, expect, test } from 'vitest';
import { type LongSection, longestSection, loopSection, recordSections, sectionedClock } from './loop-sections.ts';
import { ManualClock } from './testing/manual-clock.ts';

let clock: ManualClock;
let long: LongSection[];
let end: () => void;

beforeEach(() => {
  clock = new ManualClock();
  long = [];
  end = recordSections({ clock, leastMs: 5, onLong: (section) => void long.push(section) });
});
afterEach(() => end());

const took = () => long.map(({ name, ownMs }) => [name, ownMs]);

test('a section that took long is reported by name, a short one is not', () => {
  const work = (): string => {
    clock.advance(4);
    return 'result';
  };
  expect(loopSection('frame', work)).toBe('result');
  loopSection('split', () => clock.advance(30));
  expect(took()).toEqual([['split', 30]]);
});

test('LS1: the time of an inner section does not count for the outer one', () => {
  loopSection('raftTurn', () => {
    clock.advance(6);
    loopSection('leaseEnd', () => clock.advance(20));
    loopSection('leaseEnd', () => clock.advance(3));
    clock.advance(1);
  });
  expect(took()).toEqual([
    ['leaseEnd', 20],
    ['raftTurn', 7],
  ]);
});

test('a section that throws is reported, and the next one is not within it', () => {
  expect(() =>
    loopSection('merge', () => {
      clock.advance(10);
      throw new Error('broken');
    }),
  ).toThrow('broken');
  loopSection('http', () => clock.advance(7));
  expect(took()).toEqual([
    ['merge', 10],
    ['http', 7],
  ]);
});

test('the longest recent section is found, an older one is not', () => {
  loopSection('snapshot', () => clock.advance(400));
  clock.advance(1_000);
  loopSection('frame', () => clock.advance(10));
  loopSection('raftTurn', () => clock.advance(300));
  expect(longestSection(400)?.name).toBe('raftTurn');
  expect(longestSection(2_000)?.name).toBe('snapshot');
});

test('after the end of the recorder nothing is recorded', () => {
  end();
  loopSection('split', () => clock.advance(30));
  expect(took()).toEqual([]);
  expect(longestSection(1_000)).toBeUndefined();
});

test('timers and immediates of a sectioned clock are sections', () => {
  const sectioned = sectionedClock(clock);
  const slow = new ManualClock();
  end = recordSections({ clock: slow, leastMs: 5, onLong: (section) => void long.push(section) });
  sectioned.setTimer(10, () => slow.advance(8));
  sectioned.setImmediate(() => slow.advance(9));
  clock.advance(10);
  expect(took().sort()).toEqual([
    ['immediate', 9],
    ['timer', 8],
  ]);
});
