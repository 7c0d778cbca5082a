/**
 * Which transactions must come before which, and why. Also the graph's strongly connected components (Tarjan,
 * "Depth-first search and linear graph algorithms", 1972) and short cycles in them.
 *
 * Kinds of edges, from Adya ("Weak consistency", 1999) and Elle (Kingsbury & Alvaro, VLDB 2020):
 *  - `ww`: the second appended after the first; `wr`: the second read what the first appended;
 *  - `rw`: the first read a list without the element that the second appended;
 *  - `session`: the same client began the second after the first had ended; `time`: any client did.
 */
export const WW = 1;
export const WR = 2;
export const RW = 4;
export const SESSION = 8;
export const TIME = 16;

type EdgeKind = typeof WW | typeof WR | typeof RW | typeof SESSION | typeof TIME;

export interface Edge {
  readonly from: number;
  readonly to: number;
  readonly kind: EdgeKind;
  /** For `ww`, `wr` and `rw`: the key, and the element of the list that proves the edge. */
  readonly key: string;
  readonly element: string;
}

export class Graph {
  readonly nodes: number;
  readonly #out: Edge[][];
  #edges = 0;

  constructor(nodes: number) {
    this.nodes = nodes;
    this.#out = Array.from({ length: nodes }, () => []);
  }

  get edges(): number {
    return this.#edges;
  }

  /** An edge from a transaction to itself has no meaning, and is ignored. */
  add(edge: Edge): void {
    if (edge.from === edge.to) return;
    this.#out[edge.from]?.push(edge);
    this.#edges += 1;
  }

  /** `add` for orders without a key: session and time. */
  addOrder(from: number, to: number, kind: typeof SESSION | typeof TIME): void {
    this.add({ from, to, kind, key: '', element: '' });
  }

  from(node: number): readonly Edge[] {
    return this.#out[node] ?? [];
  }
}

/**
 * The strongly connected components with more than one node, over edges of the kinds in `kinds`, of the subgraph
 * `among`.
 */
export function components(graph: Graph, kinds: number, among: Iterable<number>): readonly (readonly number[])[] {
  return new Tarjan(graph, kinds, new Set(among)).run();
}

/** Iterative, because histories are longer than the call stack. */
class Tarjan {
  readonly #graph: Graph;
  readonly #kinds: number;
  readonly #among: ReadonlySet<number>;
  /** The order in which nodes were visited, from 1. 0: not yet. */
  readonly #met: Int32Array;
  /** The earliest node that can be reached. */
  readonly #low: Int32Array;
  readonly #onStack: Uint8Array;
  readonly #stack: number[] = [];
  readonly #found: (readonly number[])[] = [];
  #clock = 0;

  constructor(graph: Graph, kinds: number, among: ReadonlySet<number>) {
    this.#graph = graph;
    this.#kinds = kinds;
    this.#among = among;
    this.#met = new Int32Array(graph.nodes);
    this.#low = new Int32Array(graph.nodes);
    this.#onStack = new Uint8Array(graph.nodes);
  }

  run(): readonly (readonly number[])[] {
    for (const root of this.#among) if (this.#met[root] === 0) this.#explore(root);
    return this.#found;
  }

  #explore(root: number): void {
    const path: { readonly node: number; next: number }[] = [this.#enter(root)];
    for (let at = path.at(-1); at !== undefined; at = path.at(-1)) {
      const edge = this.#graph.from(at.node)[at.next++];
      if (edge === undefined) {
        path.pop();
        this.#leave(at.node, path.at(-1)?.node);
      } else if ((edge.kind & this.#kinds) !== 0 && this.#among.has(edge.to)) {
        if (this.#met[edge.to] === 0) path.push(this.#enter(edge.to));
        else if (this.#onStack[edge.to] === 1) this.#lower(at.node, this.#met[edge.to] ?? 0);
      }
    }
  }

  #enter(node: number): { readonly node: number; next: number } {
    this.#met[node] = this.#low[node] = ++this.#clock;
    this.#stack.push(node);
    this.#onStack[node] = 1;
    return { node, next: 0 };
  }

  #leave(node: number, parent: number | undefined): void {
    const low = this.#low[node] ?? 0;
    if (parent !== undefined) this.#lower(parent, low);
    if (low !== this.#met[node]) return;
    const part = this.#stack.splice(this.#stack.lastIndexOf(node));
    for (const member of part) this.#onStack[member] = 0;
    if (part.length > 1) this.#found.push(part);
  }

  #lower(node: number, to: number): void {
    this.#low[node] = Math.min(this.#low[node] ?? 0, to);
  }
}

/** The number of edges that a search may still examine, so that it ends in time for any graph. */
export interface Budget {
  edges: number;
}

export interface Way {
  readonly from: number;
  readonly to: number;
  readonly kinds: number;
  readonly among: ReadonlySet<number>;
  /** Longer paths do not matter. */
  readonly lengthMax: number;
}

/**
 * The shortest path over edges of the kinds in `kinds`, within `among`. Undefined: there is none, or the budget is used
 * up.
 */
export function shortestPath(graph: Graph, way: Way, budget: Budget): readonly Edge[] | undefined {
  const cameBy = new Map<number, Edge>();
  let frontier = [way.from];
  for (let length = 1; length <= way.lengthMax && frontier.length > 0; length++) {
    const next: number[] = [];
    for (const node of frontier) {
      const edges = graph.from(node);
      budget.edges -= edges.length;
      if (budget.edges < 0) return undefined;
      for (const edge of edges) {
        if ((edge.kind & way.kinds) === 0 || !way.among.has(edge.to) || cameBy.has(edge.to)) continue;
        cameBy.set(edge.to, edge);
        if (edge.to === way.to) return backFrom(edge, way.from, cameBy);
        next.push(edge.to);
      }
    }
    frontier = next;
  }
  return undefined;
}

function backFrom(last: Edge, start: number, cameBy: ReadonlyMap<number, Edge>): readonly Edge[] {
  const path = [last];
  for (let edge = last; edge.from !== start; ) {
    const before = cameBy.get(edge.from);
    if (before === undefined) break;
    path.push(before);
    edge = before;
  }
  return path.reverse();
}
