/** Cuts a transaction at the borders of ranges. */
import { assert, compareBytes, type Span, spanContains } from '@remora/base';
import { type Compare, type CompareAnswer, compareHolds, isLockCompare, type PartOp } from '@remora/protocol';
import { cut } from '../routing/calls/range-parts.ts';
import { comparedSpan, hullOf, keysSpan, plainKeys } from '../routing/routes/request-keys.ts';
import type { Route } from '../routing/routes/route-map.ts';
import type { TxnPlan } from './plan.ts';

/** The part of a transaction in one range. */
export interface Part {
  /** The smallest span of routing keys with all of its keys. */
  readonly span: Span;
  readonly compares: readonly Compare[];
  /** The numbers of its comparisons in the plan. */
  readonly compareNumbers: readonly number[];
  readonly ops: readonly PartOp[];
}

/** Resolves with the parts of a span by range. */
export type RoutesOf = (span: Span) => Promise<readonly Route[]>;

interface Gathering {
  span: Span;
  readonly compares: Compare[];
  readonly compareNumbers: number[];
  readonly ops: PartOp[];
}

/** Sorts parts by their keys, with the primary's first. */
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

/**
 * The outcome of each comparison, from the outcomes of its pieces. A span without keys compares like one absent key.
 */
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

/** The outcomes of comparisons, or pieces of them, in one range. */
export interface Answers {
  readonly numbers: readonly number[];
  readonly compares: readonly CompareAnswer[];
}
