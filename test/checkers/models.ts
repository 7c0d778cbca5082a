/**
 * Sequential models: the behaviour of one object, one operation at a time.
 *
 * D1. `step` returns the state after an operation, the *same* state object if nothing changes, and undefined if the
 *     model could not have given this answer. For an operation of unknown outcome it returns the effect that the
 *     operation may have had, whatever its answer would have been.
 * D2. An operation that `observes` never changes the state, wherever it is placed: a read, a refusal.
 * D3. `fingerprint` is equal for equal states, and only for those.
 */
import type { HistoryRecord, Value } from './history.ts';

export interface Model<S> {
  readonly name: string;
  readonly initial: S;
  step(state: S, op: HistoryRecord): S | undefined;
  observes(op: HistoryRecord): boolean;
  fingerprint(state: S): string;
  describe(state: S): string;
  /**
   * Optional: the only state (its fingerprint) in which a completed operation fits, and the only state that an
   * operation leads to. With both, the search does not leave a state that is still needed if it could not come back to
   * it.
   */
  needs?(op: HistoryRecord): string | undefined;
  gives?(op: HistoryRecord): string | undefined;
  /** Optional: uses the whole history to remove what makes no difference, and to detect dead ends earlier. */
  narrow?(ops: readonly HistoryRecord[]): Narrowed<S>;
}

/** An equivalent question that needs fewer steps. */
export interface Narrowed<S> {
  readonly ops: readonly HistoryRecord[];
  readonly step: Model<S>['step'];
}

/** A key: `get`, `put`, `del`, `cas`. If every write has a unique value, it also reveals lost writes. */
export const registerModel: Model<Value> = {
  name: 'register',
  initial: null,
  step(value, op) {
    const unknown = op.t1 === null;
    switch (op.op) {
      case 'get':
        return unknown || same(value, op.out ?? null) ? value : undefined;
      case 'put':
        return op.v ?? null;
      case 'del':
        return null;
      case 'cas': {
        const matches = same(value, op.x ?? null);
        if (unknown) return matches ? (op.v ?? null) : value;
        if (matches !== op.ok) return undefined;
        return matches ? (op.v ?? null) : value;
      }
      default:
        return undefined;
    }
  },
  observes: (op) => op.op === 'get' || (op.op === 'cas' && isRefusal(op)),
  fingerprint: (value) => JSON.stringify(value),
  describe: (value) => (value === null ? 'absent' : `value ${JSON.stringify(value)}`),
  needs(op) {
    if (op.t1 === null) return undefined;
    if (op.op === 'get') return JSON.stringify(op.out ?? null);
    return op.op === 'cas' && op.ok ? JSON.stringify(op.x ?? null) : undefined;
  },
  gives(op) {
    if (op.op === 'get' || (op.op === 'cas' && isRefusal(op))) return undefined;
    return JSON.stringify(op.op === 'del' ? null : (op.v ?? null));
  },
  narrow: (ops) => ({ ops: withoutUnseenWrites(ops), step: registerModel.step }),
};

/**
 * A write of unknown outcome whose value nobody saw can only explain a failed comparison, with a value that could have
 * been there.
 */
function withoutUnseenWrites(ops: readonly HistoryRecord[]): readonly HistoryRecord[] {
  const written = (op: HistoryRecord) => JSON.stringify(op.op === 'del' ? null : (op.v ?? null));
  const values = new Set(ops.filter((op) => op.op !== 'get').map(written)).add('null');
  const seen = new Set<string>();
  for (const op of ops) {
    const expected = JSON.stringify(op.x ?? null);
    if (op.op === 'cas' && isRefusal(op) && values.has(expected)) return ops;
    if (op.op === 'get' && op.t1 !== null) seen.add(JSON.stringify(op.out ?? null));
    if (op.op === 'cas') seen.add(expected);
  }
  return ops.filter((op) => op.t1 !== null || op.op === 'get' || seen.has(written(op)));
}

/** A list: its last element and the list before it. Equal lists of one model are the same node. */
export interface ListNode {
  readonly id: number;
  readonly length: number;
  readonly before: ListNode | undefined;
  readonly element: string;
  readonly after: Map<string, ListNode>;
}

/**
 * A list: `append`, `get`. If every element is unique, an append that was applied twice, lost or reordered cannot be
 * explained. Use one model for one check: it remembers every list that it met.
 */
export function createAppendModel(): Model<ListNode> {
  const empty: ListNode = { id: 0, length: 0, before: undefined, element: '', after: new Map() };
  let nodes = 1;
  const append = (list: ListNode, element: string): ListNode => {
    const known = list.after.get(element);
    if (known !== undefined) return known;
    const node = { id: nodes++, length: list.length + 1, before: list, element, after: new Map<string, ListNode>() };
    list.after.set(element, node);
    return node;
  };
  const step = (list: ListNode, op: HistoryRecord): ListNode | undefined => {
    if (op.op === 'append') return append(list, String(op.v));
    if (op.op !== 'get') return undefined;
    return op.t1 === null || isList(list, elementsOf(op)) ? list : undefined;
  };
  return {
    name: 'list',
    initial: empty,
    step,
    observes: (op) => op.op === 'get',
    fingerprint: ({ id }) => String(id),
    describe: (list) => `a list of ${list.length} that ends with ${JSON.stringify(list.element)}`,
    narrow(ops) {
      // Elements of a list stay. Therefore an append of unknown outcome that no read saw comes after all reads, or
      // never happened. Every list is a prefix of the longest one that was read, or extends it.
      const reads = ops.map(elementsOf);
      const seen = new Set(reads.flat());
      const longest = reads.reduce((best, elements) => (elements.length > best.length ? elements : best), []);
      return {
        ops: ops.filter((op) => op.t1 !== null || op.op !== 'append' || seen.has(String(op.v))),
        step(list, op) {
          const inOrder = list.length >= longest.length || longest[list.length] === String(op.v);
          return op.op !== 'append' || inOrder ? step(list, op) : undefined;
        },
      };
    },
  };
}

/** The result of a read. An absent list is empty. */
export function elementsOf(op: HistoryRecord): readonly string[] {
  return op.op === 'get' && op.t1 !== null && Array.isArray(op.out) ? op.out : [];
}

function isList(list: ListNode, elements: readonly string[]): boolean {
  if (list.length !== elements.length) return false;
  let node: ListNode | undefined = list;
  for (let i = elements.length - 1; i >= 0; i--) {
    if (node === undefined || node.element !== elements[i]) return false;
    node = node.before;
  }
  return true;
}

export function isRefusal(op: HistoryRecord): boolean {
  return op.t1 !== null && !op.ok;
}

function same(a: Value, b: Value): boolean {
  return a === b || (Array.isArray(a) && JSON.stringify(a) === JSON.stringify(b));
}
