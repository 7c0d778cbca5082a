import { describe, expect, test } from 'vitest';
import { endText, isOne, namedAt, spanText, startText } from '../src/logic/routing-key.ts';

describe('what a place names', () => {
  test.each([
    { place: 'key:orders/42', named: { kind: 'key', key: 'orders/42' } },
    { place: 'key:a\\x5cb\\xff', named: { kind: 'key', key: { base64: 'YVxi/w==' } } },
    { place: 'lock:orders/42', named: { kind: 'lock', namespace: 'default', name: 'orders/42' } },
    { place: 'lock@jo\\x3abs:a:b', named: { kind: 'lock', namespace: 'jo:bs', name: 'a:b' } },
    { place: 'lock@:a', named: { kind: 'lock', namespace: '', name: 'a' } },
    ...['-', 'key:', 'lock:', 'lock@jobs:', 'lease:5f3a', 'raw:0901', 'key:a\\q'].map((place) => ({
      place,
      named: undefined,
    })),
  ])('$place', ({ place, named }) => {
    expect(namedAt(place)).toEqual(named);
  });
});

describe('a span', () => {
  test.each([
    { from: 'key:a', to: 'key:a\\x00', text: 'key:a' },
    { from: 'lock@jobs:a', to: 'lock@jobs:a\\x00', text: 'lock@jobs:a' },
    { from: 'lease:00000000000000ff', to: 'lease:0000000000000100', text: 'lease:00000000000000ff' },
    { from: 'lease:00ff', to: 'lease:0100', text: undefined },
    { from: 'key:a', to: 'key:b', text: undefined },
    { from: 'key:', to: 'key:\\x00', text: undefined },
  ])('from $from to $to is one: $text', ({ from, to, text }) => {
    expect(isOne(from, to)).toBe(text !== undefined);
    expect(spanText(from, to)).toBe(text ?? `${startText(from)} to ${endText(to)}`);
  });

  test.each([
    { place: '-', start: 'the first key', end: 'the last key' },
    { place: '', start: 'the first key', end: 'the last key' },
    { place: 'lock:', start: 'the first lock', end: 'the first lock' },
    { place: 'lock@:', start: 'the first lock', end: 'the first lock' },
    { place: 'lock@jobs:', start: 'the locks of namespace jobs', end: 'the locks of namespace jobs' },
    { place: 'key:a', start: 'key:a', end: 'key:a' },
  ])('has words for the bound "$place"', ({ place, start, end }) => {
    expect([startText(place), endText(place)]).toEqual([start, end]);
  });
});
