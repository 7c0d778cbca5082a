import { SeededRandom } from '@remora/base';
import { describe, expect, test } from 'vitest';
import { NOWHERE, type TickMember, TickWheel } from './tick-wheel.ts';

/** A group that is due at `dueTick`, and then again after `every` ticks. */
class Member implements TickMember {
  place = NOWHERE;
  dueTick: number;
  readonly asked: number[] = [];
  readonly done: number[] = [];
  readonly #now: () => number;
  readonly #every: number;

  constructor(now: () => number, dueTick: number, every = 1000) {
    this.#now = now;
    this.dueTick = dueTick;
    this.#every = every;
  }

  elapsed(): void {
    const now = this.#now();
    this.asked.push(now);
    if (now < this.dueTick) return;
    this.done.push(now);
    this.dueTick = now + this.#every;
  }
}

function wheel() {
  const ticks = new TickWheel();
  let tick = 0;
  const now = () => tick;
  const run = (count: number) => {
    for (let i = 0; i < count; i++) ticks.advance(++tick);
  };
  return { ticks, now, run };
}

describe('tick wheel', () => {
  test('asks a group at the ticks at which it is due, and at no other', () => {
    const { ticks, now, run } = wheel();
    const member = new Member(now, 3, 4);
    ticks.schedule(member);
    run(12);
    expect(member.asked).toEqual([3, 7, 11]);
  });

  test('says after how many ticks somebody may be due, and looks no further than it is asked to', () => {
    const { ticks, now, run } = wheel();
    expect(ticks.ticksToNext(5)).toBe(5);
    expect(ticks.schedule(new Member(now, 3))).toBe(3);
    expect([ticks.ticksToNext(2), ticks.ticksToNext(3), ticks.ticksToNext(9)]).toEqual([2, 3, 3]);
    run(2);
    expect(ticks.ticksToNext(9)).toBe(1);
  });

  test('a group that puts something off is asked when it is due, and wakes nobody before', () => {
    const { ticks, now, run } = wheel();
    const member = new Member(now, 10);
    ticks.schedule(member);
    run(8);
    member.dueTick = 17;
    run(20);
    expect(member.asked).toEqual([17]);
    expect(member.done).toEqual([17]);
  });

  test('a node wakes for a tick at which one group is due, though others were postponed (W3)', () => {
    const { ticks, now, run } = wheel();
    const members = [new Member(now, 3), new Member(now, 3), new Member(now, 5)];
    for (const member of members) ticks.schedule(member);
    for (const member of members.slice(0, 2)) member.dueTick = 20;
    expect(ticks.ticksToNext(9)).toBe(5);
    run(6);
    expect(members.map(({ asked }) => asked)).toEqual([[], [], [5]]);
    expect(ticks.ticksToNext(30)).toBe(14);
    run(15);
    expect(members.map(({ done }) => done)).toEqual([[20], [20], [5]]);
  });

  test('a group that brings something forward is asked then, and not a second time at its old place', () => {
    const { ticks, now, run } = wheel();
    const member = new Member(now, 30);
    ticks.schedule(member);
    member.dueTick = 0; // at once
    ticks.schedule(member);
    run(40);
    expect(member.asked).toEqual([1]);
  });

  test('waits that are longer than the wheel is round end when they should', () => {
    const { ticks, now, run } = wheel();
    const member = new Member(now, 300);
    ticks.schedule(member);
    run(400);
    expect(member.done).toEqual([300]);
  });

  test('a group that was taken out is not asked any more', () => {
    const { ticks, now, run } = wheel();
    const member = new Member(now, 5);
    ticks.schedule(member);
    ticks.remove(member);
    run(10);
    expect(member.asked).toEqual([]);
  });

  test('whatever is moved about, nobody misses a due tick', () => {
    const random = new SeededRandom(5);
    const { ticks, now, run } = wheel();
    const members = Array.from({ length: 50 }, () => new Member(now, 1 + random.int(150), 1 + random.int(150)));
    const due = new Map(members.map((member) => [member, member.dueTick]));
    for (const member of members) ticks.schedule(member);
    for (let step = 0; step < 3000; step++) {
      const member = members[random.int(members.length)];
      if (member !== undefined) {
        member.dueTick = now() + 1 + random.int(150);
        ticks.schedule(member); // it needs to be told only of what comes nearer; of the rest it may be
      }
      for (const each of members) due.set(each, each.dueTick);
      run(1);
      for (const each of members) if (due.get(each) === now()) expect(each.done.at(-1)).toBe(now());
    }
  });
});
