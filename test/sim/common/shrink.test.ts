import { describe, expect, test } from 'vitest';
import type { FaultEvent } from './faults/fault.ts';
import { SHRINK_RUNS_MAX, type ShrinkTask, shrink } from './shrink.ts';

const events: readonly FaultEvent[] = Array.from({ length: 40 }, (_, i) => ({
  atMs: i,
  kind: `fault ${i}`,
  lastsMs: 1,
  a: 0,
  b: 0,
  c: 0,
}));

function task(breaks: (kinds: readonly string[]) => string | undefined, more: Partial<ShrinkTask> = {}): ShrinkTask {
  return {
    events,
    property: 'p',
    mayGoOn: () => true,
    progress: () => undefined,
    run: async (some) => {
      const property = breaks(some.map(({ kind }) => kind));
      return property === undefined ? {} : { failure: { property, detail: '', last: [] } };
    },
    ...more,
  };
}

const kindsOf = ({ events: left }: { readonly events: readonly FaultEvent[] }) => left.map(({ kind }) => kind);

describe('a failing schedule is made smaller', () => {
  test('down to the faults that are needed together', async () => {
    const needed = ['fault 3', 'fault 17', 'fault 38'];
    const shrunk = await shrink(task((kinds) => (needed.every((kind) => kinds.includes(kind)) ? 'p' : undefined)));
    expect(kindsOf(shrunk)).toEqual(needed);
  });

  test('to none, when it fails without any', async () => {
    expect(await shrink(task(() => 'p'))).toEqual({ events: [], runs: 1 });
  });

  test('while the same promise is broken, not another one', async () => {
    const breaks = (kinds: readonly string[]) => (kinds.includes('fault 5') ? 'p' : 'other');
    expect(kindsOf(await shrink(task(breaks)))).toEqual(['fault 5']);
  });

  test('for as long as there is time, and shows how far it is', async () => {
    const seen: number[] = [];
    const shrunk = await shrink(
      task((kinds) => (kinds.includes('fault 5') ? 'p' : undefined), {
        mayGoOn: () => seen.length < 7,
        progress: ({ runs }) => seen.push(runs),
      }),
    );
    expect(shrunk.runs).toBe(7);
    expect(seen).toEqual([1, 2, 3, 4, 5, 6, 7]);
    expect(kindsOf(shrunk)).toContain('fault 5');
    expect(shrunk.events.length).toBeLessThan(events.length);
  });

  test('with a bounded number of runs', async () => {
    const many = Array.from({ length: 20 }, () => events).flat();
    const needsAll = task((kinds) => (kinds.length === many.length ? 'p' : undefined), { events: many });
    const shrunk = await shrink(needsAll);
    expect(shrunk.runs).toBe(SHRINK_RUNS_MAX);
    expect(shrunk.events).toEqual(many);
  });
});
