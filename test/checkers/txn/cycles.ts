/**
 * Cycles of a graph of transactions, classified by what they break (Adya; Elle §4): the fewer kinds of edges a cycle
 * needs, the weaker is the promise that it already breaks.
 *
 * Y1. A history without a cycle over all kinds of edges has none of these. Therefore the whole graph is examined once,
 *     and only faulty histories need more work.
 * Y2. A cycle's name depends on its edges, not on the search that found it.
 * Y3. Each name is reported once, with a short cycle: the shortest one, unless the budget ran out before. At least one
 *     cycle is found, whatever the budget.
 */
import { type Budget, components, type Edge, type Graph, RW, SESSION, shortestPath, TIME, WR, WW } from './graph.ts';

export type CycleBase = 'G0' | 'G1c' | 'G-single' | 'G2';
/** Cycles that need the order of a session or of real time have that in their name. */
export type CycleType = CycleBase | `${CycleBase}-session` | `${CycleBase}-realtime`;

export interface Cycle {
  readonly type: CycleType;
  /** Each edge ends where the next one begins. The last one ends where the first one begins. */
  readonly edges: readonly Edge[];
}

/** The number of edges to examine per question. */
const BUDGET_EDGES = 500_000;
const DATA = WW | WR | RW;

/** The cycles of a graph over the kinds in `kinds`, the most serious first. */
export function findCycles(graph: Graph, kinds: number, budgetEdges = BUDGET_EDGES): readonly Cycle[] {
  const everywhere = Array.from({ length: graph.nodes }, (_, i) => i);
  const suspects = components(graph, kinds, everywhere).flat(); // Y1
  if (suspects.length === 0) return [];
  const found = new Map<CycleType, Cycle>();
  for (const order of new Set([0, SESSION & kinds, (SESSION | TIME) & kinds])) {
    for (const data of [WW, WW | WR, DATA]) {
      const mask = (data | order) & kinds;
      for (const part of components(graph, mask, suspects)) {
        const among = new Set(part);
        const single = data === DATA ? cycleWithOneRw(graph, mask, among, { edges: budgetEdges }) : undefined;
        for (const edges of [single, shortestCycle(graph, mask, among, { edges: budgetEdges })]) {
          if (edges === undefined) continue;
          const cycle = { type: typeOf(edges), edges };
          const known = found.get(cycle.type);
          if (known === undefined || edges.length < known.edges.length) found.set(cycle.type, cycle);
        }
      }
    }
  }
  return [...found.values()].sort((a, b) => gravity(a.type) - gravity(b.type));
}

function cycleWithOneRw(
  graph: Graph,
  mask: number,
  among: ReadonlySet<number>,
  budget: Budget,
): readonly Edge[] | undefined {
  let best: readonly Edge[] | undefined;
  for (const node of among) {
    for (const edge of graph.from(node)) {
      if (edge.kind !== RW || !among.has(edge.to)) continue;
      const lengthMax = (best?.length ?? Number.POSITIVE_INFINITY) - 2;
      const back = shortestPath(graph, { from: edge.to, to: node, kinds: mask & ~RW, among, lengthMax }, budget);
      if (back !== undefined) best = [edge, ...back];
      if (budget.edges < 0 || best?.length === 2) return best;
    }
  }
  return best;
}

function shortestCycle(
  graph: Graph,
  mask: number,
  among: ReadonlySet<number>,
  budget: Budget,
): readonly Edge[] | undefined {
  let best: readonly Edge[] | undefined;
  for (const node of among) {
    // Y3. Every node of a component is on a cycle: the first search may take as long as it needs.
    const allowed = best === undefined ? { edges: Number.POSITIVE_INFINITY } : budget;
    const lengthMax = (best?.length ?? Number.POSITIVE_INFINITY) - 1;
    best = shortestPath(graph, { from: node, to: node, kinds: mask, among, lengthMax }, allowed) ?? best;
    if (budget.edges < 0 || best?.length === 2) return best;
  }
  return best;
}

/** Y2. */
function typeOf(edges: readonly Edge[]): CycleType {
  const rw = edges.filter(({ kind }) => kind === RW).length;
  const base = rw > 1 ? 'G2' : rw === 1 ? 'G-single' : edges.some(({ kind }) => kind === WR) ? 'G1c' : 'G0';
  if (edges.some(({ kind }) => kind === TIME)) return `${base}-realtime`;
  return edges.some(({ kind }) => kind === SESSION) ? `${base}-session` : base;
}

const BASES: readonly string[] = ['G0', 'G1c', 'G-single', 'G2'] satisfies CycleBase[];

function gravity(type: CycleType): number {
  const order = type.endsWith('-realtime') ? 2 : type.endsWith('-session') ? 1 : 0;
  return order * BASES.length + BASES.indexOf(type.replace(/-(session|realtime)$/, ''));
}
