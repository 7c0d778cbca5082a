import { expect, test } from 'vitest';
import { BarrierCheck, type BarrierEvent, runCheck } from '../index.ts';

const barrier = 'b';
const of = (type: Exclude<BarrierEvent['type'], 'enters'>, owner: string): BarrierEvent => ({ type, barrier, owner });
const enters = (owner: string, parties = 2): BarrierEvent => ({ type: 'enters', barrier, owner, parties });

test.each<{ readonly name: string; readonly events: readonly BarrierEvent[]; readonly expect: readonly string[] }>([
  {
    name: 'whoever waits passes when the holder lets go, also if another one holds it by then',
    events: [of('up', 'h'), of('waits', 'w'), of('down', 'h'), of('up', 'i'), of('passed', 'w')],
    expect: [],
  },
  {
    name: 'one that was put up meanwhile may have come after',
    events: [of('waits', 'w'), of('up', 'h'), of('passed', 'w')],
    expect: [],
  },
  {
    name: 'nobody passes a barrier that one holds all the time',
    events: [of('up', 'h'), of('waits', 'w'), of('passed', 'w')],
    expect: ['barrier: nobody passes it'],
  },
  {
    name: 'two meet, and part',
    events: [
      ...[enters('a'), enters('b'), of('entered', 'a'), of('entered', 'b'), of('leaves', 'a'), of('leaves', 'b')],
      ...[of('allLeft', 'a'), of('out', 'a'), of('allLeft', 'b')],
    ],
    expect: [],
  },
  {
    name: 'one that was there for a while counts, also when it is out by the time that the other hears of it',
    events: [enters('a'), enters('b'), of('out', 'b'), of('entered', 'a')],
    expect: [],
  },
  { name: 'one alone does not enter', events: [enters('a'), of('entered', 'a')], expect: ['barrier: only together'] },
  {
    name: 'two that were not there at the same time do not enter',
    events: [enters('b', 1), of('entered', 'b'), of('out', 'b'), enters('a'), of('entered', 'a')],
    expect: ['barrier: only together'],
  },
  {
    name: 'not all have left while one is inside',
    events: [
      ...[enters('a'), enters('b'), of('entered', 'a'), of('entered', 'b')],
      ...[of('leaves', 'a'), of('allLeft', 'a')],
    ],
    expect: ['barrier: all leave together'],
  },
])('$name', ({ events, expect: found }) => {
  expect(runCheck(new BarrierCheck(), events).map(({ property }) => property)).toEqual(found);
});
