import { beforeEach, expect, test } from 'vitest';
import { ManualClock } from '../../testing/manual-clock.ts';
import { joinRound } from './look-rounds.ts';

const EVERY_MS = 100;
let clock: ManualClock;
let looks: string[];
beforeEach(() => {
  clock = new ManualClock();
  looks = [];
});

function join(name: string): () => void {
  return joinRound(clock, EVERY_MS, () => looks.push(`${name} ${clock.monotonicMs()}`));
}

test('members that joined at different times are called together, once per round (LR1)', () => {
  const startMs = clock.monotonicMs();
  join('a');
  clock.advance(40);
  join('b');
  clock.advance(30);
  join('c'); // the next round is too soon for it
  expect(clock.pendingTimers).toBe(1);
  clock.advance(130);
  const at = (ms: number) => startMs + ms;
  expect(looks).toEqual([`a ${at(100)}`, `b ${at(100)}`, `a ${at(200)}`, `b ${at(200)}`, `c ${at(200)}`]);
});

test('a round ends with its last member', () => {
  const leave = [join('a'), join('b')];
  leave[0]?.();
  clock.advance(EVERY_MS);
  expect(looks.splice(0)).toHaveLength(1);
  leave[1]?.();
  expect(clock.pendingTimers).toBe(0);
  clock.advance(10 * EVERY_MS);
  expect(looks).toEqual([]);
  join('c');
  clock.advance(EVERY_MS);
  expect(looks).toHaveLength(1);
});

test('a member may leave and join again while the round looks', () => {
  const leave = joinRound(clock, EVERY_MS, () => {
    looks.push('a');
    leave();
    join('b');
  });
  clock.advance(EVERY_MS);
  expect(looks).toEqual(['a']);
  clock.advance(EVERY_MS);
  expect(looks).toHaveLength(2);
});

test('a full round takes no more members: others get a round of their own (LR2)', () => {
  const leaves = Array.from({ length: 64 }, (_, i) => join(`${i}`));
  clock.advance(30);
  join('next');
  expect(clock.pendingTimers).toBe(2);
  clock.advance(EVERY_MS - 30);
  expect(looks.splice(0)).toHaveLength(64);
  leaves[0]?.();
  join('into the gap');
  expect(clock.pendingTimers).toBe(2);
});
