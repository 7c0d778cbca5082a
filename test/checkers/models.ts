/**
 * Sequential models: what one object does, one operation at a time.
 *
 * D1. `step` answers with the state after an operation, with the *same* state object when nothing changes, and with
 *     undefined when the model could not have answered so. For an operation whose outcome is unknown it answers with
 *     the effect that it may have had, whatever it would have been told.
 * D2. An operation that `observes` changes no state whatever, wherever it is placed: a read, a refusal.
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
   * Optional: the one state (its fingerprint) in which an operation that ended fits, and the one that an operation
   * leads to. With both, the search does not leave a state that it could not come back to while it is still needed.
   */
  needs?(op: HistoryRecord): string | undefined;
  gives?(op: HistoryRecord): string | undefined;
  /** Optional: uses the whole history to leave out what makes no difference, and to see dead ends earlier. */
  narrow?(ops: readonly HistoryRecord[]): Narrowed<S>;
}

/** The same question as before, with the same answer, in fewer steps. */
export interface Narrowed<S> {
  readonly ops: readonly HistoryRecord[];
  readonly step: Model<S>['step'];
}

/** A key: `get`, `put`, `del`, `cas`. Where every write has a value of its own, it also shows lost writes. */
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
 * A write of unknown outcome whose value nobody saw matters only by what it hides: for a compare that failed, with a
 * value that could have been there.
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

/** A list, as the last element behind the list before it. Equal lists of one model are the same node. */
export interface ListNode {
  readonly id: number;
  readonly length: number;
  readonly before: ListNode | undefined;
  readonly element: string;
  readonly after: Map<string, ListNode>;
}

/**
 * A list: `append`, `get`. Where every element is unique, an append that was applied twice, lost or reordered cannot
 * be explained. One model serves one check: it remembers every list that it met.
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
      // What is in a list stays: an append of unknown outcome that no read saw has its place after all reads, or none,
      // and every list is the beginning of the longest one that was read, or goes on from there.
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

/** What a read returned; an absent list is an empty one. */
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
