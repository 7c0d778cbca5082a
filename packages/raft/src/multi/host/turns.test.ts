import { ManualClock } from '@remora/base/testing';
import { describe, expect, test } from 'vitest';
import { TurnLoop, type TurnMember } from './turns.ts';

const BUDGET_MS = 10;

interface Work {
  readonly collectMs?: number;
  readonly slices?: number;
  readonly applyMs?: number;
  readonly marks?: TurnMember;
  readonly follows?: boolean;
}

/** A loop whose groups take time on the manual clock, and the order of what it did; `|` begins a turn. */
function loop() {
  const clock = new ManualClock();
  let spentMs = 0;
  const log: string[] = [];
  const disk = { slow: false };
  const writes: (() => void)[] = [];
  const turns = new TurnLoop({
    clock: {
      wallMs: () => clock.wallMs(),
      monotonicMs: () => clock.monotonicMs() + spentMs,
      setTimer: (delayMs, fn) => clock.setTimer(delayMs, fn),
      setImmediate: (fn) => clock.setImmediate(fn),
    },
    turnBudgetMs: BUDGET_MS,
    guard: (work) => work(),
    flush: (_outbox, durable) => {
      log.push('|');
      if (disk.slow) writes.push(durable);
      else durable();
    },
  });
  /** Calls back what was written while the disk was slow, the oldest. */
  const durable = (): void => writes.shift()?.();
  /** A group that takes `collectMs` and has `slices` to apply, of `applyMs` each. */
  const group = (name: string, work: Work) => {
    let slices = work.slices ?? 0;
    const member: TurnMember & { closed: boolean } = {
      dirty: false,
      closed: false,
      leads: work.follows !== true,
      collect: () => {
        log.push(name);
        spentMs += work.collectMs ?? 0;
        if (work.marks !== undefined) turns.markDirty(work.marks);
      },
      apply: () => {
        if (slices === 0) return false;
        log.push(name.toUpperCase());
        spentMs += work.applyMs ?? 0;
        return --slices > 0;
      },
    };
    return member;
  };
  return { clock, turns, group, disk, durable, take: () => log.splice(0).join('') };
}

/** Everything that is to be done, with what is done in each turn on its own. */
function run({ clock, take }: ReturnType<typeof loop>): string[] {
  const seen: string[] = [];
  while (clock.hasImmediates) {
    oneTurn(clock);
    seen.push(take());
  }
  return seen;
}

/** One turn, and not those that follow from it. */
function oneTurn(clock: ManualClock): void {
  let again: (() => void) | undefined;
  const real = clock.setImmediate.bind(clock);
  clock.setImmediate = (fn) => {
    again = fn;
  };
  clock.runImmediates();
  clock.setImmediate = real;
  if (again !== undefined) clock.setImmediate(again);
}

describe('a turn', () => {
  test('collects from all groups, sends and writes once, then applies', () => {
    const bed = loop();
    bed.turns.start();
    for (const name of ['a', 'b', 'c']) bed.turns.markDirty(bed.group(name, { slices: 1 }));
    expect(run(bed)).toEqual(['abc|ABC']);
  });

  test('ends collecting after half of its budget; who was not reached goes first in the next one', () => {
    const bed = loop();
    bed.turns.start();
    const marks = bed.group('x', {}); // has something to do only once `a` was collected from
    const all = ['a', 'b', 'c', 'd', 'e'].map((name) => bed.group(name, { collectMs: 3, marks }));
    for (const member of all) bed.turns.markDirty(member);
    oneTurn(bed.clock);
    expect(bed.take()).toBe('ab|');
    const [first] = all;
    if (first !== undefined) bed.turns.markDirty(first); // it has more to do already
    expect(run(bed)).toEqual(['cd|', 'exa|', 'x|']);
  });

  test('ends applying when its budget is spent; groups take turns, slice by slice, and nobody starves', () => {
    const bed = loop();
    bed.turns.start();
    bed.turns.markDirty(bed.group('a', { slices: 6, applyMs: 4 }));
    bed.turns.markDirty(bed.group('b', { slices: 1, applyMs: 4 }));
    bed.turns.markDirty(bed.group('c', { slices: 2, applyMs: 4 }));
    bed.turns.markDirty(bed.group('d', { slices: 1, applyMs: 4 }));
    const seen = run(bed);
    expect(seen.map((turn) => turn.replace(/^.*\|/, ''))).toEqual(['ABC', 'DAC', 'AAA', 'A']);
  });

  test('reaches one group at least, however long it takes', () => {
    const bed = loop();
    bed.turns.start();
    bed.turns.markDirty(bed.group('a', { collectMs: 100, slices: 2, applyMs: 100 }));
    bed.turns.markDirty(bed.group('b', { collectMs: 100, slices: 1, applyMs: 100 }));
    expect(run(bed)).toEqual(['a|A', 'b|B', 'a|A']);
  });

  test('passes over groups that are gone', () => {
    const bed = loop();
    bed.turns.start();
    const gone = bed.group('a', { slices: 1 });
    bed.turns.markDirty(gone);
    gone.closed = true;
    bed.turns.markDirty(bed.group('b', { slices: 1 }));
    expect(run(bed)).toEqual(['b|B']);
  });

  test('leaves applying of followers until what it writes is durable, whatever later turns write (H7)', () => {
    const bed = loop();
    bed.turns.start();
    bed.disk.slow = true;
    bed.turns.markDirty(bed.group('a', { slices: 1 }));
    bed.turns.markDirty(bed.group('f', { slices: 1, follows: true }));
    expect(run(bed)).toEqual(['af|A']);
    bed.turns.markDirty(bed.group('g', { slices: 1, follows: true }));
    expect(run(bed)).toEqual(['g|']);
    bed.durable();
    expect(run(bed)).toEqual(['F']);
    bed.durable();
    expect(run(bed)).toEqual(['G']);
  });

  test('leaves applying of followers to a turn of the loop of its own (H7)', () => {
    const bed = loop();
    bed.turns.start();
    bed.turns.markDirty(bed.group('a', { slices: 1 }));
    const follower = bed.group('f', { slices: 2, follows: true });
    bed.turns.markDirty(follower);
    oneTurn(bed.clock);
    expect(bed.take()).toBe('af|A');
    expect(run(bed)).toEqual(['FF']);
    bed.turns.markDirty(bed.group('g', { slices: 6, applyMs: 2, follows: true }));
    expect(run(bed)).toEqual(['g|', 'GGG', 'g|', 'GGG']); // H4
  });

  test('is at once for who is in a hurry, and none is begun for nothing', () => {
    const bed = loop();
    bed.turns.hurry();
    const member = bed.group('a', { slices: 1 });
    bed.turns.markDirty(member);
    bed.turns.hurry();
    expect(bed.take()).toBe('');
    bed.turns.start();
    bed.turns.hurry();
    expect(bed.take()).toBe('a|A');
    expect(run(bed)).toEqual(['']);
  });

  test('waits for the start, and takes each group once however often it is marked', () => {
    const bed = loop();
    const member = bed.group('a', {});
    bed.turns.markDirty(member);
    bed.turns.markDirty(member);
    expect(bed.clock.hasImmediates).toBe(false);
    bed.turns.start();
    expect(run(bed)).toEqual(['a|']);
  });
});
