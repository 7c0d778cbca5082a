import { expect, test } from 'vitest';
import { LapseCheck, type LapseEvent, runCheck } from '../index.ts';

const lock = 'l';
const granted = (version: number, atMs: number, delayMs = 0): LapseEvent => ({
  ...{ type: 'granted', lock, version, atMs, delayMs },
});
const vouched = (version: number, atMs: number, untilMs: number, limitMs = Number.POSITIVE_INFINITY): LapseEvent => ({
  ...{ type: 'vouched', lock, version, atMs, untilMs, limitMs },
});
const given = (version: number): LapseEvent => ({ type: 'given', lock, version });

test.each<{ readonly name: string; readonly events: readonly LapseEvent[]; readonly expect: readonly string[] }>([
  {
    name: 'free when it was given back',
    events: [granted(1, 0), vouched(1, 0, 90), given(1), granted(2, 9)],
    expect: [],
  },
  { name: 'free when its time has passed', events: [granted(1, 0), vouched(1, 0, 90), granted(2, 90)], expect: [] },
  {
    name: 'free when its time and its delay have passed',
    events: [granted(1, 0, 50), vouched(1, 0, 90), granted(2, 140)],
    expect: [],
  },
  {
    name: 'granted before its time has passed',
    events: [granted(1, 0), vouched(1, 0, 90), granted(2, 89)],
    expect: ['lapse: kept'],
  },
  {
    name: 'granted before its delay has passed',
    events: [granted(1, 0, 50), vouched(1, 0, 90), granted(2, 100)],
    expect: ['lapse: kept'],
  },
  {
    name: 'whoever is told late of an earlier grant was granted it before',
    events: [granted(2, 0), vouched(2, 0, 90), granted(1, 10)],
    expect: [],
  },
  { name: 'lost in time', events: [granted(1, 0), vouched(1, 5, 90, 95), vouched(1, 96, 96, 95)], expect: [] },
  {
    name: 'its delay follows its time, however late its holder notices',
    events: [granted(1, 0, 50), vouched(1, 0, 90), vouched(1, 130, 130), granted(2, 140)],
    expect: [],
  },
  {
    name: 'relied upon for too long',
    events: [granted(1, 0), vouched(1, 96, 99, 95)],
    expect: ['lapse: bounded'],
  },
])('$name', ({ events, expect: found }) => {
  expect(runCheck(new LapseCheck(), events).map(({ property }) => property)).toEqual(found);
});
