/** How a transaction is cut at the borders of ranges. */
import { assert, compareBytes, type Span, spanContains } from '@remora/base';
import { type Compare, type CompareAnswer, compareHolds, isLockCompare, type PartOp } from '@remora/protocol';
import { cut } from '../routing/calls/range-parts.ts';
import { comparedSpan, hullOf, keysSpan, plainKeys } from '../routing/routes/request-keys.ts';
import type { Route } from '../routing/routes/route-map.ts';
import type { TxnPlan } from './plan.ts';

/** What one range has to do with a transaction. */
export interface Part {
  /** The smallest span of routing keys with all that it has to do with. */
  readonly span: Span;
  readonly compares: readonly Compare[];
  /** Which of the plan's comparisons those are. */
  readonly compareNumbers: readonly number[];
  readonly ops: readonly PartOp[];
}

/** The parts of a span by ranges. */
export type RoutesOf = (span: Span) => Promise<readonly Route[]>;

interface Gathering {
  span: Span;
  readonly compares: Compare[];
  readonly compareNumbers: number[];
  readonly ops: PartOp[];
}

/** In the order of their keys, but for the primary's, which comes first. */
export async function partsOf(plan: TxnPlan, routesOf: RoutesOf): Promise<readonly Part[]> {
  const byRange = new Map<number, Gathering>();
  const gather = ({ range: { rangeId }, start, end }: Route): Gathering => {
    const known = byRange.get(rangeId);
    const part = known ?? { span: { start, end }, compares: [], compareNumbers: [], ops: [] };
    if (known === undefined) byRange.set(rangeId, part);
    part.span = hullOf(part.span, { start, end });
    return part;
  };
  for (const [number, compare] of plan.compares.entries()) {
    const routes = await routesOf(comparedSpan(compare));
    for (const route of routes) {
      const part = gather(route);
      part.compares.push(routes.length === 1 ? compare : { ...compare, ...plainKeys(route) });
      part.compareNumbers.push(number);
    }
  }
  for (const { number, branch, op } of plan.ops) {
    const span = keysSpan(op);
    const routes = await routesOf(span);
    for (const route of routes) gather(route).ops.push({ number, branch, op: pieceOf(op, span, route, routes.length) });
  }
  const parts = [...byRange.values()].sort((a, b) => compareBytes(a.span.start, b.span.start));
  const primary = parts.findIndex(({ span }) => spanContains(span, plan.primaryKey));
  assert(primary >= 0, 'one part has the primary key');
  return [...parts.splice(primary, 1), ...parts];
}

function pieceOf(op: PartOp['op'], whole: Span, span: Span, pieces: number): PartOp['op'] {
  if (pieces === 1 || op.type === 'put') return op;
  return op.type === 'delete' ? { ...op, ...plainKeys(span) } : cut({ op, span: whole }, span).op;
}

/** How each comparison came out, by what ranges say of its pieces. One of keys that are not there compares as one of them. */
export function outcomes(compares: readonly Compare[], answers: readonly Answers[]): readonly boolean[] {
  const failed = new Set<number>();
  const found = new Set<number>();
  for (const { numbers, compares: said } of answers) {
    for (const [i, number] of numbers.entries()) {
      if (said[i] === 'fails') failed.add(number);
      if (said[i] === 'holds') found.add(number);
    }
  }
  return compares.map((compare, number) => {
    if (failed.has(number)) return false;
    return found.has(number) || (!isLockCompare(compare) && compareHolds(compare, undefined));
  });
}

/** What one range says of the comparisons, or pieces of such, with these numbers. */
export interface Answers {
  readonly numbers: readonly number[];
  readonly compares: readonly CompareAnswer[];
}
