import { expect, test } from 'vitest';
import { ElectionCheck, type ElectionEvent, runCheck, type Told } from '../index.ts';

const election = 'e';
const says = (leader: string, count = 0): ElectionEvent => ({ type: 'says', election, leader, count });
const told = (leader: string, version: number, count = 0): Told => ({ leader, version, count });
const acknowledged = (...of: Parameters<typeof told>): ElectionEvent => ({
  type: 'acknowledged',
  election,
  ...told(...of),
});
const observed = (what: Told | undefined, observer = 'o'): ElectionEvent => ({
  type: 'observed',
  election,
  observer,
  told: what,
});
const asks: ElectionEvent = { type: 'asks', election, asker: 'q' };
const answered = (what: Told | undefined): ElectionEvent => ({ type: 'answered', election, asker: 'q', told: what });

test.each<{ readonly name: string; readonly events: readonly ElectionEvent[]; readonly expect: readonly string[] }>([
  {
    name: 'leaders one after another, of whom an observer misses what it could not be told',
    events: [
      ...[says('a'), observed(undefined), observed(told('a', 1)), acknowledged('a', 1), says('a', 1), says('a', 2)],
      ...[observed(told('a', 1, 2)), observed(undefined), says('b'), says('c'), observed(told('c', 3))],
    ],
    expect: [],
  },
  {
    name: 'two observers, each in its own time',
    events: [
      ...[says('a'), says('a', 1), observed(told('a', 1), 'o'), observed(told('a', 1, 1), 'o')],
      observed(told('a', 1), 'p'),
    ],
    expect: [],
  },
  {
    name: 'two leaders of one version',
    events: [says('a'), says('b'), acknowledged('a', 1), observed(told('b', 1))],
    expect: ['election: one leader'],
  },
  {
    name: 'an earlier leader after a later one',
    events: [says('a'), says('b'), observed(told('b', 2)), observed(undefined), observed(told('a', 1))],
    expect: ['election: observed in order'],
  },
  {
    name: 'an earlier proclamation after a later one',
    events: [says('a'), says('a', 1), observed(told('a', 1, 1)), observed(told('a', 1))],
    expect: ['election: observed in order'],
  },
  {
    name: 'the same twice in a row',
    events: [says('a'), observed(told('a', 1)), observed(told('a', 1))],
    expect: ['election: observed in order'],
  },
  {
    name: 'what nobody has said',
    events: [says('a'), observed(told('a', 1, 1))],
    expect: ['election: nothing is made up'],
  },
  {
    name: 'an answer that is out of date, and one that was when it came only',
    events: [
      ...[says('a'), says('a', 1), acknowledged('a', 1), asks, acknowledged('a', 1, 1), answered(told('a', 1))],
      ...[asks, answered(told('a', 1))],
    ],
    expect: ['election: the present leader is told'],
  },
])('$name', ({ events, expect: found }) => {
  expect(runCheck(new ElectionCheck(), events).map(({ property }) => property)).toEqual(found);
});
