import { compareBytes, type Span, spanContains } from '@remora/base';
import type { RangeDescriptor } from '@remora/protocol';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { RouteMap } from './route-map.ts';

const KEYS = 8;
const key = (n: number): Uint8Array => (n === 0 ? Buffer.alloc(0) : Buffer.from([n]));
const end = (n: number): Uint8Array => key(n === KEYS ? 0 : n);

/** A range with keys `[from, to)` of `KEYS`. */
interface Piece {
  readonly rangeId: number;
  readonly from: number;
  readonly to: number;
  readonly version: number;
  readonly confVersion: number;
}

function descriptor({ rangeId, from, to, version, confVersion }: Piece): RangeDescriptor {
  const epoch = { version, confVersion };
  return { rangeId, start: key(from), end: end(to), epoch, replicas: [], revisionSource: 'master' };
}

type Change =
  | { readonly type: 'split'; readonly at: number }
  | { readonly type: 'merge'; readonly at: number }
  | { readonly type: 'members'; readonly at: number };

const changes: fc.Arbitrary<readonly Change[]> = fc.array(
  fc.record({ type: fc.constantFrom('split', 'merge', 'members'), at: fc.integer({ min: 0, max: KEYS - 1 }) }),
  { maxLength: 20 },
);

/** All descriptors that there ever were when a cluster changes so, in order; `last` are those that hold at the end. */
function history(list: readonly Change[]): {
  readonly all: readonly RangeDescriptor[];
  readonly last: readonly Piece[];
} {
  let pieces: readonly Piece[] = [{ rangeId: 1, from: 0, to: KEYS, version: 1, confVersion: 1 }];
  const all = pieces.map(descriptor);
  let ids = 1;
  for (const { type, at } of list) {
    const i = pieces.findIndex(({ from, to }) => from <= at && at < to);
    const [one, next] = [pieces[i], pieces[i + 1]];
    if (one === undefined) continue;
    let made: readonly Piece[] = [];
    let gone = 1;
    if (type === 'members') made = [{ ...one, confVersion: one.confVersion + 1 }];
    else if (type === 'split' && at > one.from) {
      const version = one.version + 1;
      made = [
        { ...one, to: at, version },
        { ...one, from: at, version, rangeId: ++ids },
      ];
    } else if (type === 'merge' && next !== undefined) {
      made = [{ ...one, to: next.to, version: Math.max(one.version, next.version) + 1 }];
      gone = 2;
    } else continue;
    pieces = [...pieces.slice(0, i), ...made, ...pieces.slice(i + gone)];
    all.push(...made.map(descriptor));
  }
  return { all, last: pieces };
}

const order = ({ epoch }: RangeDescriptor): number => epoch.version * 1_000 + epoch.confVersion;

/** RM2 as it is said: of the latest of each range those that name the key, and of them the latest. */
function naive(learned: readonly RangeDescriptor[], n: number): RangeDescriptor | undefined {
  return learned
    .filter((range) => learned.every((other) => other.rangeId !== range.rangeId || order(other) <= order(range)))
    .filter((range) => spanContains(range, key(n)))
    .toSorted((a, b) => order(b) - order(a))[0];
}

/** Whether a range is known to have lost the key: another one had it since. */
function hasLost(learned: readonly RangeDescriptor[], range: RangeDescriptor | undefined, n: number): boolean {
  return learned.some((other) => spanContains(other, key(n)) && range !== undefined && order(other) > order(range));
}

function name(range: RangeDescriptor | undefined): string | undefined {
  return range && `${range.rangeId}@${range.epoch.version}.${range.epoch.confVersion}`;
}

function seen(map: RouteMap): readonly (string | undefined)[] {
  return Array.from({ length: KEYS }, (_, n) => name(map.find(key(n))));
}

function wellFormed(map: RouteMap): boolean {
  return map.routes.every((route, i) => {
    const before = map.routes[i - 1];
    const notEmpty = route.end.length === 0 || compareBytes(route.start, route.end) < 0;
    return notEmpty && (before === undefined || (before.end.length > 0 && compareBytes(before.end, route.start) <= 0));
  });
}

const learnings = changes.chain((list) => {
  const { all, last } = history(list);
  return fc
    .array(fc.array(fc.integer({ min: 0, max: all.length - 1 }), { maxLength: 4 }), { maxLength: 12 })
    .map((picks) => ({ all, last, answers: picks.map((each) => each.flatMap((i) => all[i] ?? [])) }));
});

describe('a map of routes', () => {
  test('has each key in the range whose latest descriptor names it, or in a hole when that has lost it', () => {
    fc.assert(
      fc.property(learnings, ({ answers }) => {
        const map = new RouteMap();
        const learned: RangeDescriptor[] = [];
        for (const answer of answers) {
          const before = seen(map);
          const changed = map.learn(answer);
          learned.push(...answer);
          for (const [n, shown] of seen(map).entries()) {
            const wanted = naive(learned, n);
            if (shown !== undefined || !hasLost(learned, wanted, n)) expect([n, shown]).toEqual([n, name(wanted)]);
          }
          expect(wellFormed(map)).toBe(true);
          const everywhere = map.routes.length === 1 ? seen(map) : [];
          const [whole] = everywhere.includes(undefined) ? [] : everywhere;
          expect(name(map.whole)).toBe(whole);
          if (!changed) expect(seen(map)).toEqual(before);
          expect(map.learn(answer)).toBe(false);
        }
      }),
      { seed: 1, numRuns: 200 },
    );
  });

  test('shows how the ranges are once each of them was heard, however much old news came before and after', () => {
    fc.assert(
      fc.property(learnings, ({ last, answers }) => {
        const map = new RouteMap();
        for (const answer of answers) map.learn(answer);
        map.learn(last.map(descriptor));
        for (const answer of answers) map.learn(answer);
        const routes = map.routes.map(({ start, end: to, range }) => [[...start], [...to], range.rangeId]);
        expect(routes).toEqual(last.map((piece) => [[...key(piece.from)], [...end(piece.to)], piece.rangeId]));
      }),
      { seed: 2, numRuns: 200 },
    );
  });

  test('covers a span with its parts in order, or says that one is unknown', () => {
    const spans = fc
      .tuple(fc.integer({ min: 0, max: KEYS - 1 }), fc.integer({ min: 1, max: KEYS }))
      .filter(([from, to]) => from < to);
    fc.assert(
      fc.property(learnings, spans, ({ answers }, [from, to]) => {
        const map = new RouteMap();
        for (const answer of answers) map.learn(answer);
        const span: Span = { start: key(from), end: end(to) };
        const parts = map.covering(span);
        const keys = Array.from({ length: to - from }, (_, i) => key(from + i));
        if (parts === undefined) {
          expect(keys.some((one) => map.find(one) === undefined)).toBe(true);
          return;
        }
        expect(parts[0]?.start).toEqual(span.start);
        expect(parts.at(-1)?.end).toEqual(span.end);
        expect(parts.slice(1).map((part) => part.start)).toEqual(parts.slice(0, -1).map((part) => part.end));
        for (const one of keys) {
          expect(parts.find((part) => spanContains(part, one))?.range).toBe(map.find(one));
        }
      }),
      { seed: 3, numRuns: 200 },
    );
  });
});
