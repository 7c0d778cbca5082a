import { readFileSync } from 'node:fs';
import { SeededRandom } from '@remora/base';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { hasExplanation } from './every-order.ts';
import { checkLinearizable, fromJsonLines, type HistoryRecord, isTxn, lockModel } from './index.ts';
import { countUnseen } from './lock-gaps.ts';
import { search } from './search.ts';
import { shrink } from './shrink.ts';

const UNKNOWN = null;
type Span = readonly [t0: number, t1: number | null];

function op(c: string, name: HistoryRecord['op'], [t0, t1]: Span, rest: Partial<HistoryRecord> = {}): HistoryRecord {
  return { c, k: 'k', op: name, ok: t1 !== null, t0, t1, ...rest };
}
const granted = (v: number, span: Span) => op(`g${v}`, 'acquire', span, { out: v });
const released = (v: number, span: Span) => op(`g${v}`, 'release', span, { v });
const gone = (v: number, span: Span) => op(`g${v}`, 'check', span, { v, out: false });
const busy = (c: string, span: Span) => op(c, 'acquire', span, { ok: false });
/** Gave up, and may have held it for a moment. */
const hidden = (c: string, t0: number) => [op(c, 'acquire', [t0, UNKNOWN]), op(c, 'release', [t0, UNKNOWN])];
/** Gave up, and nothing would free the lock from it. */
const stuck = (c: string, t0: number) => [op(c, 'acquire', [t0, UNKNOWN])];

/** Nobody is known to hold the lock from 4 to 10, from 14 to 20, and from 24 on. */
const HOLDS = [5, 6, 7].flatMap((v, i) => [granted(v, [10 * i, 10 * i + 1]), released(v, [10 * i + 3, 10 * i + 4])]);

const ROWS: readonly { name: string; more: readonly HistoryRecord[]; expect: 'ok' | 'violation' }[] = [
  { name: 'nobody was refused', more: hidden('h', 0), expect: 'ok' },
  { name: 'refused while nobody held it', more: [busy('a', [6, 7])], expect: 'violation' },
  { name: 'refused while a hidden holder may have', more: [...hidden('h', 2), busy('a', [6, 7])], expect: 'ok' },
  { name: 'refused before the hidden holder asked', more: [...hidden('h', 8), busy('a', [6, 7])], expect: 'violation' },
  {
    name: 'one hidden holder for two refusals of one gap',
    more: [...hidden('h', 6), busy('a', [5, 6]), busy('b', [8, 9])],
    expect: 'ok',
  },
  {
    name: 'one hidden holder for refusals of two gaps',
    more: [...hidden('h', 0), busy('a', [6, 7]), busy('b', [16, 17])],
    expect: 'violation',
  },
  {
    name: 'two hidden holders, the later one for the later gap only',
    more: [...hidden('h', 0), ...hidden('i', 15), busy('a', [6, 7]), busy('b', [16, 17])],
    expect: 'ok',
  },
  {
    name: 'two hidden holders that both came too late for the first gap',
    more: [...hidden('h', 15), ...hidden('i', 15), busy('a', [6, 7]), busy('b', [16, 17])],
    expect: 'violation',
  },
  { name: 'refused at the edge of a known hold', more: [busy('a', [4, 7]), busy('b', [6, 10])], expect: 'ok' },
  {
    name: 'a hidden holder that nothing frees, between two',
    more: [...stuck('h', 0), busy('a', [6, 7])],
    expect: 'violation',
  },
  {
    name: 'a hidden holder that nothing frees, at the end',
    more: [...stuck('h', 0), busy('a', [26, 27])],
    expect: 'ok',
  },
  {
    name: 'one of both kinds, and a gap for each',
    more: [...stuck('h', 0), ...hidden('i', 0), busy('a', [6, 7]), busy('b', [26, 27])],
    expect: 'ok',
  },
  {
    name: 'gone for longer than the release says',
    more: [gone(5, [1.5, 2]), busy('a', [2.5, 2.8])],
    expect: 'violation',
  },
  { name: 'two at a time, whoever else gave up', more: [...hidden('h', 0), granted(8, [1, 2])], expect: 'violation' },
];

describe('a lock whose askers gave up:', () => {
  test.each(ROWS)('$name: $expect', ({ more, expect: expected }) => {
    const history = [...HOLDS, ...more];
    expect(countUnseen(history)).toBeDefined();
    expect(hasExplanation(lockModel, history) ? 'ok' : 'violation').toBe(expected);
    expect(checkLinearizable(lockModel, history).result).toBe(expected);
  });

  test.each([
    { name: 'a check of a version that nobody was told', more: [gone(9, [30, 31])] },
    { name: 'a check of a version before it was told', more: [gone(7, [19, 21])] },
    { name: 'a release of whatever one holds', more: [op('g5', 'release', [30, 31], { ok: false })] },
    { name: 'a release of a version that nobody was told', more: [released(9, [30, UNKNOWN])] },
    { name: 'two acquires of which one has no answer', more: [...hidden('h', 0), busy('h', [1, 2])] },
    { name: 'a release that may come only later', more: [...stuck('h', 0), op('h', 'release', [1, UNKNOWN])] },
  ])('$name is left to the search', ({ more }) => {
    expect(countUnseen([...HOLDS, ...more])).toBeUndefined();
  });
});

describe('against every order', () => {
  const span = fc.tuple(fc.nat(16), fc.nat(4)).map(([t0, length]): Span => [t0, t0 + length]);
  const holds = fc.record({
    asked: span,
    after: fc.array(
      fc.record({
        what: fc.constantFrom('release', 'freed', 'held', 'gone', 'kept'),
        pause: fc.nat(5),
        length: fc.nat(3),
      }),
      { maxLength: 2 },
    ),
  });
  const histories = fc
    .record({
      holds: fc.array(holds, { maxLength: 2 }),
      refusals: fc.array(span, { minLength: 1, maxLength: 3 }),
      gaveUp: fc.array(fc.record({ t0: fc.nat(16), freed: fc.boolean() }), { maxLength: 2 }),
    })
    .map(({ holds, refusals, gaveUp }) => [
      ...holds.flatMap(({ asked, after }, i) => {
        const v = i + 1;
        let t = (asked[1] ?? 0) + 1;
        const rest = after.map(({ what, pause, length }) => {
          const [t0, t1] = [t + pause, t + pause + length];
          t = t1 + 1;
          if (what === 'freed') return released(v, [asked[0], UNKNOWN]);
          if (what === 'release') return released(v, [t0, t1]);
          if (what === 'kept') return { ...released(v, [t0, t1]), ok: false };
          return op(`g${v}`, 'check', [t0, t1], { v, out: what === 'held' });
        });
        return [granted(v, asked), ...rest];
      }),
      ...refusals.map((each, i) => busy(`r${i}`, each)),
      ...gaveUp.flatMap(({ t0, freed }, i) => (freed ? hidden(`h${i}`, t0) : stuck(`h${i}`, t0))),
    ]);

  test('what is counted comes out as what is searched, and what shrinks has no explanation either', () => {
    const met = { ok: 0, violation: 0, explained: 0 };
    fc.assert(
      fc.property(histories, (history) => {
        const counted = countUnseen(history);
        const refusals = (ops: readonly HistoryRecord[]) => ops.filter(({ ok, t1 }) => !ok && t1 !== null).length;
        if (refusals(counted?.ops ?? []) < refusals(history)) met.explained += 1;
        expect(counted).toBeDefined();
        const expected = hasExplanation(lockModel, history) ? 'ok' : 'violation';
        met[expected] += 1;
        expect(checkLinearizable(lockModel, history).result).toBe(expected);
        if (expected === 'ok') return;
        expect(hasExplanation(lockModel, shrink(lockModel, history, { statesMax: 10_000 }))).toBe(false);
      }),
      { numRuns: 3_000 },
    );
    expect(Math.min(met.ok, met.violation, met.explained)).toBeGreaterThan(300);
  });
});

describe('many that gave up', () => {
  /** Holders in turn, and beside them so many that were refused or gave up; some of the latter held it, unseen. */
  function crowded(random: SeededRandom, holders: number): HistoryRecord[] {
    const history: HistoryRecord[] = [];
    let t = 0;
    for (let v = 1; v <= holders; v++) {
      const begin = t + random.int(30);
      const [grantedAt, end] = [begin + 20, begin + 20 + random.int(200)];
      const sessionEnded = random.int(5) === 0;
      history.push(granted(v, [begin - random.int(300), grantedAt + 5]));
      history.push(op(`g${v}`, 'check', [grantedAt + 6, grantedAt + 9], { v, out: true }));
      history.push(released(v, sessionEnded ? [begin, UNKNOWN] : [Math.max(end, grantedAt + 10), end + 30]));
      history.push(busy(`b${v}`, [grantedAt + random.int(5), grantedAt + 40]));
      t = end + 35;
      history.push(...hidden(`h${v}`, t - random.int(400)), busy(`w${v}`, [t - 60, t + random.int(40)]));
      if (random.int(3) > 0) continue;
      // A hidden holder, which others were refused for.
      for (let i = 0; i <= random.int(3); i++) history.push(busy(`u${v}.${i}`, [t + 10, t + 20]));
      t += 30;
      history.push(granted(v + 0.5, [t, t + 10]), released(v + 0.5, [t + 11, t + 15]));
      t += 20;
    }
    return history;
  }

  test.each([20, 200, 2_000])('%i of them are decided in few steps', (holders) => {
    const history = crowded(new SeededRandom(3), holders);
    const verdict = checkLinearizable(lockModel, history);
    expect(verdict.result, verdict.explanation).toBe('ok');
    expect(verdict.states).toBeLessThan(3 * history.length);
  });

  test('a lock of a chaos run with 19 time-outs, which the search alone could not decide', () => {
    const file = new URL('histories/lock-with-many-timeouts.jsonl', import.meta.url);
    const history = fromJsonLines(readFileSync(file, 'utf8')).filter((record) => !isTxn(record));
    const verdict = checkLinearizable(lockModel, history);
    expect(verdict.result, verdict.explanation).toBe('ok');
    expect(verdict.states).toBeLessThan(history.length);
  });

  test('a second holder among them is found', () => {
    const history = crowded(new SeededRandom(4), 200);
    const last = Math.max(...history.map(({ t1 }) => t1 ?? 0));
    const second = [granted(1_000, [last + 1, last + 2]), granted(1_001, [last + 3, last + 4])];
    const found = checkLinearizable(lockModel, [...history, ...second, released(1_000, [last + 5, last + 6])]);
    expect(found.result).toBe('violation');
    expect(found.explanation).toContain('acquire() = ok 1001   ← has no place');
  });

  test('one refused in a gap for which too few gave up is found', () => {
    const history = crowded(new SeededRandom(5), 200).filter(({ c }) => !String(c).startsWith('h'));
    expect(search(lockModel, history, { statesMax: 10 * history.length }).result).toBe('violation');
  });
});
